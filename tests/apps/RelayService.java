// SPDX-License-Identifier: Apache-2.0
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.Executors;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A relay: takes a JSON list of {"url": …, "arguments": […]} by POST and POSTs the arguments of each
 * to its url. It knows nothing of trace contexts: what it sends on, somebody else wrote.
 *
 * <p>RelayService --port N (other options are accepted and not used)
 */
public final class RelayService {
  private static final Pattern CALL =
      Pattern.compile("\"url\"\\s*:\\s*\"([^\"]*)\"\\s*,\\s*\"arguments\"\\s*:\\s*");

  /** Where the JSON list that begins at {@code at} ends; its texts hold no brackets. */
  private static int endOfList(String text, int at) {
    int depth = 0;
    do {
      char c = text.charAt(at++);
      depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    } while (depth > 0);
    return at;
  }

  private static void call(String url, String arguments) throws IOException {
    HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
    connection.setReadTimeout(30_000);
    connection.setRequestMethod("POST");
    connection.setRequestProperty("Content-Type", "application/json");
    connection.setDoOutput(true);
    try (OutputStream out = connection.getOutputStream()) {
      out.write(arguments.getBytes(StandardCharsets.UTF_8));
    }
    try (InputStream in = connection.getInputStream()) {
      in.readAllBytes();
    }
  }

  private static void handle(HttpExchange exchange) throws IOException {
    try (exchange) {
      String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      Matcher matcher = CALL.matcher(body);
      while (matcher.find()) {
        call(matcher.group(1), body.substring(matcher.end(), endOfList(body, matcher.end())));
      }
      exchange.sendResponseHeaders(200, 2);
      exchange.getResponseBody().write("ok".getBytes(StandardCharsets.UTF_8));
    }
  }

  public static void main(String[] arguments) throws IOException {
    int port = Integer.parseInt(arguments[Arrays.asList(arguments).indexOf("--port") + 1]);
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), port), 64);
    server.createContext("/", RelayService::handle);
    server.setExecutor(Executors.newCachedThreadPool());
    server.start();
  }
}
