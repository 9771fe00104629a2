# bash completion for weft; made by `weft --completion`
_weft ()
{
  local word=${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="profile controller run attach detach ls instruct stop tasks show record replay --help --version --completion --man"
  else
    case ${COMP_WORDS[1]} in
      profile) words="--all --for --on --root --embed --capture --match --sample --max --carrier --embed-to --json --controller --verbose --help" ;;
      controller) words="--listen --journal --journal-max --journal-age --store --background --idle-exit --controller --verbose --help" ;;
      run) words="--service --controller --verbose --help" ;;
      attach) words="--all --service --json --controller --verbose --help" ;;
      detach) words="--all --json --controller --verbose --help" ;;
      ls) words="--all --losses --json --csv --controller --verbose --help" ;;
      instruct) words="--on --root --embed --capture --match --sample --max --for --lease --carrier --embed-to --json --controller --verbose --help" ;;
      stop) words="--json --controller --verbose --help" ;;
      tasks) words="--each --instruction --last --name --limit --json --csv --controller --verbose --help" ;;
      show) words="--full --json --csv --controller --verbose --help" ;;
      record) words="--for --all --journal --json --controller --verbose --help" ;;
      replay) words="--speed --repeat --seed --json --controller --verbose --help" ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _weft weft
