# bash completion for weft; made by `weft --completion`
_weft ()
{
  local word=${COMP_WORDS[COMP_CWORD]} words
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="profile controller run attach detach doctor ls instruct stop tasks show top report export record replay keys --help --version --completion --man"
  else
    case ${COMP_WORDS[1]} in
      profile) words="--all --for --on --root --embed --capture --match --match-header --exclude --sample --max --carrier --embed-to --json --controller --keys --plain-tcp --verbose --help" ;;
      controller) words="--listen --journal --journal-max --journal-age --store --store-max --store-age --tasks-max --memory-max --otlp --background --idle-exit --controller --keys --plain-tcp --verbose --help" ;;
      run) words="--service --controller --keys --plain-tcp --verbose --help" ;;
      attach) words="--all --service --any --json --controller --keys --plain-tcp --verbose --help" ;;
      detach) words="--all --json --controller --keys --plain-tcp --verbose --help" ;;
      doctor) words="--any --json --controller --keys --plain-tcp --verbose --help" ;;
      ls) words="--all --losses --json --csv --controller --keys --plain-tcp --verbose --help" ;;
      instruct) words="--on --root --embed --capture --match --match-header --exclude --sample --max --for --lease --carrier --embed-to --json --controller --keys --plain-tcp --verbose --help" ;;
      stop) words="--json --controller --keys --plain-tcp --verbose --help" ;;
      tasks) words="--each --edges --sort --limit --name --service --slower --errors --since --last --instruction --json --csv --controller --keys --plain-tcp --verbose --help" ;;
      show) words="--full --json --csv --controller --keys --plain-tcp --verbose --help" ;;
      top) words="--once --sort --limit --name --service --slower --errors --since --last --instruction --json --csv --controller --keys --plain-tcp --verbose --help" ;;
      report) words="-o --limit --name --service --slower --errors --since --last --instruction --controller --keys --plain-tcp --verbose --help" ;;
      export) words="--format -o --to --limit --name --service --slower --errors --since --last --instruction --controller --keys --plain-tcp --verbose --help" ;;
      record) words="--for --all --journal --json --controller --keys --plain-tcp --verbose --help" ;;
      replay) words="--speed --repeat --seed --json --controller --keys --plain-tcp --verbose --help" ;;
      keys) words="--for --json --controller --keys --plain-tcp --verbose --help" ;;
    esac
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o default -F _weft weft
