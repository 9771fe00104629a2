// SPDX-License-Identifier: Apache-2.0

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.URI;
import java.util.concurrent.Executors;

/** Front PORT PEER_PORT: front.py for the JVM; HttpURLConnection, 400 ms of patience. */
public final class Front {
  public static void main(String[] arguments) throws IOException {
    int port = Integer.parseInt(arguments[0]);
    String peer = "http://127.0.0.1:" + arguments[1];
    HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
    server.setExecutor(Executors.newCachedThreadPool());
    server.createContext("/", exchange -> {
      String path = exchange.getRequestURI().getPath();
      int status = 200;
      String text;
      try {
        text = "ok " + ask(peer + path, path.startsWith("/patient/") ? 60_000 : 400);
      } catch (IOException error) {
        status = 502;
        text = "failed " + error.getClass().getSimpleName();
      }
      exchange.sendResponseHeaders(status, text.length());
      try (OutputStream out = exchange.getResponseBody()) {
        out.write(text.getBytes());
      }
    });
    server.start();
  }

  private static int ask(String url, int patience) throws IOException {
    HttpURLConnection call = (HttpURLConnection) URI.create(url).toURL().openConnection();
    call.setConnectTimeout(patience);
    call.setReadTimeout(patience);
    try (InputStream in = call.getInputStream()) {
      return in.readAllBytes().length;
    }
  }
}
