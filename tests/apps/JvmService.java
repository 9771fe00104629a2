// SPDX-License-Identifier: Apache-2.0

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A JVM service on the JDK alone: com.sun.net.httpserver with a cached thread pool, calls by
 * HttpURLConnection; with --workers N, that pool has N threads. It reads the same call plan as its Python neighbours (see plan.py).
 */
public final class JvmService {
  private static final Pattern FIELD = Pattern.compile("\"(\\w+)\": ?(?:\"([^\"\\\\]*)\"|(-?\\d+))");

  private final String name;
  private final Map<String, String> peers = new HashMap<>();
  private final PrintStream log;

  private JvmService(Map<String, List<String>> options) throws IOException {
    name = options.get("--name").get(0);
    for (String peer : options.getOrDefault("--peer", List.of())) {
      int equals = peer.indexOf('=');
      peers.put(peer.substring(0, equals), peer.substring(equals + 1));
    }
    Path path = Path.of(options.get("--log").get(0));
    log =
        new PrintStream(
            Files.newOutputStream(path, StandardOpenOption.CREATE, StandardOpenOption.APPEND),
            true,
            StandardCharsets.UTF_8);
  }

  /** One node of a call plan, with its own text. */
  private static final class Node {
    String peer, kind, path, work, text;
    int status, upload, answer, end;
    final List<Node> children = new ArrayList<>();

    static Node parse(String text, int at) {
      int end = at;
      while (end < text.length() && "(),".indexOf(text.charAt(end)) < 0) {
        end++;
      }
      String[] parts = text.substring(at, end).split("~");
      Node node = new Node();
      node.peer = parts[0];
      node.kind = parts[1];
      node.path = parts[2];
      node.work = parts[3];
      node.status = Integer.parseInt(parts[4]);
      node.upload = Integer.parseInt(parts[5]);
      node.answer = Integer.parseInt(parts[6]);
      if (end < text.length() && text.charAt(end) == '(') {
        do {
          Node child = parse(text, end + 1);
          node.children.add(child);
          end = child.end;
        } while (text.charAt(end) == ',');
        end++;
      }
      node.end = end;
      node.text = text.substring(at, end);
      return node;
    }
  }

  private static void work(String spec) {
    if (spec.charAt(0) == 'l') {
      synchronized (FIELD) {
        work('s' + spec.substring(1));
      }
      return;
    }
    long millis = Long.parseLong(spec.substring(1));
    if (spec.charAt(0) == 's') {
      try {
        Thread.sleep(millis);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      return;
    }
    long end = System.nanoTime() + millis * 1_000_000;
    long sum = 0;
    while (System.nanoTime() < end) {
      for (int i = 0; i < 200; i++) {
        sum += i;
      }
    }
    if (sum < 0) {
      throw new IllegalStateException("a sum of positive numbers below zero");
    }
  }

  private static Map<String, String> fields(HttpExchange exchange) throws IOException {
    Map<String, String> fields = new HashMap<>();
    if (exchange.getRequestMethod().equals("GET")) {
      for (String pair : exchange.getRequestURI().getRawQuery().split("&")) {
        String[] parts = pair.split("=", 2);
        fields.put(parts[0], URLDecoder.decode(parts[1], StandardCharsets.UTF_8));
      }
      return fields;
    }
    String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
    Matcher matcher = FIELD.matcher(body);
    while (matcher.find()) {
      fields.put(matcher.group(1), matcher.group(2) != null ? matcher.group(2) : matcher.group(3));
    }
    return fields;
  }

  private void call(Node node, int number, String at) throws IOException {
    boolean get = node.kind.equals("G");
    String query = get ? "?n=" + number + "&at=" + at + "&plan=" + node.text : "";
    HttpURLConnection connection =
        (HttpURLConnection) URI.create(peers.get(node.peer) + node.path + query).toURL().openConnection();
    connection.setReadTimeout(30_000);
    if (!get) {
      byte[] body =
          String.format(
                  "{\"n\": %d, \"at\": \"%s\", \"plan\": \"%s\", \"pad\": \"%s\"}",
                  number, at, node.text, "x".repeat(node.upload))
              .getBytes(StandardCharsets.UTF_8);
      connection.setRequestMethod("POST");
      connection.setRequestProperty("Content-Type", "application/json");
      connection.setDoOutput(true);
      if (node.kind.equals("C")) {
        connection.setChunkedStreamingMode(1500);
      }
      try (OutputStream out = connection.getOutputStream()) {
        out.write(body);
      }
    }
    int status = connection.getResponseCode();
    String answer;
    try (InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
      answer = new String(in.readAllBytes(), StandardCharsets.UTF_8);
    }
    check(node, number, at, status, answer);
  }

  /** The answer must be the one to this very request, whole. */
  private static void check(Node node, int number, String at, int status, String answer) {
    Map<String, String> got = new HashMap<>();
    Matcher matcher = FIELD.matcher(answer);
    while (matcher.find()) {
      got.put(matcher.group(1), matcher.group(2) != null ? matcher.group(2) : matcher.group(3));
    }
    if (status != node.status
        || !Integer.toString(number).equals(got.get("n"))
        || !at.equals(got.get("at"))
        || !node.peer.equals(got.get("service"))
        || !"y".repeat(node.answer).equals(got.get("pad"))) {
      throw new IllegalStateException("request " + number + " at " + at + ": a wrong answer, status " + status);
    }
  }

  private static long now() {
    Instant now = Instant.now();
    return now.getEpochSecond() * 1_000_000_000L + now.getNano();
  }

  private void handle(HttpExchange exchange) throws IOException {
    try (exchange) {
      long start = now();
      Map<String, String> fields = fields(exchange);
      int number = Integer.parseInt(fields.get("n"));
      String at = fields.get("at");
      Node node = Node.parse(fields.get("plan"), 0);
      if (fields.getOrDefault("pad", "").length() != node.upload) {
        throw new IllegalStateException("the padding of request " + number + " did not arrive whole");
      }
      work(node.work);
      for (int i = 0; i < node.children.size(); i++) {
        Node child = node.children.get(i);
        if (child.kind.equals("W")) {
          work(child.work);
        } else {
          call(child, number, at + "." + i);
        }
      }
      String traceparent = exchange.getRequestHeaders().getFirst("traceparent");
      String line =
          String.format(
              "{\"n\": %d, \"at\": \"%s\", \"service\": \"%s\", \"method\": \"%s\", \"route\": \"%s\","
                  + " \"status\": %d, \"start_ns\": %d, \"end_ns\": %d, \"pid\": %d, \"traceparent\": %s}\n",
              number,
              at,
              name,
              exchange.getRequestMethod(),
              exchange.getRequestURI().getPath(),
              node.status,
              start,
              now(),
              ProcessHandle.current().pid(),
              traceparent == null ? "null" : '"' + traceparent + '"');
      log.write(line.getBytes(StandardCharsets.UTF_8));
      byte[] answer =
          String.format(
                  "{\"n\": %d, \"at\": \"%s\", \"service\": \"%s\", \"pad\": \"%s\"}",
                  number, at, name, "y".repeat(node.answer))
              .getBytes(StandardCharsets.UTF_8);
      exchange.getResponseHeaders().set("Content-Type", "application/json");
      exchange.sendResponseHeaders(node.status, node.answer % 2 == 1 ? 0 : answer.length);
      try (OutputStream out = exchange.getResponseBody()) {
        out.write(answer);
      }
    } catch (RuntimeException | IOException e) {
      e.printStackTrace();
      throw e;
    }
  }

  public static void main(String[] arguments) throws IOException {
    Map<String, List<String>> options = new HashMap<>();
    for (int i = 0; i + 1 < arguments.length; i += 2) {
      options.computeIfAbsent(arguments[i], key -> new ArrayList<>()).add(arguments[i + 1]);
    }
    JvmService service = new JvmService(options);
    int port = Integer.parseInt(options.get("--port").get(0));
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port), 64);
    server.createContext("/", service::handle);
    int workers = Integer.parseInt(options.getOrDefault("--workers", List.of("0")).get(0));
    server.setExecutor(workers > 0 ? Executors.newFixedThreadPool(workers) : Executors.newCachedThreadPool());
    server.start();
  }
}
