// SPDX-License-Identifier: Apache-2.0
// A service that asks a PostgreSQL server through JDBC: GET /ask?n=N. One thread for each
// connection, one request a connection; the connection to the database is kept.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

public final class JdbcAsker {
  private final String url;
  private Connection kept;

  private JdbcAsker(String url) {
    this.url = url;
  }

  private synchronized int ask(int n) throws SQLException {
    if (kept == null) {
      kept = DriverManager.getConnection(url, "postgres", "");
    }
    int sum = 0;
    try (PreparedStatement statement = kept.prepareStatement("SELECT ?::int, repeat('x', 100)")) {
      for (int i = 1; i <= n; i++) {
        statement.setInt(1, i);
        try (ResultSet rows = statement.executeQuery()) {
          while (rows.next()) {
            sum += rows.getInt(1);
            if (rows.getString(2).length() != 100) {
              throw new SQLException("another text came back");
            }
          }
        }
      }
    }
    return sum;
  }

  private void serve(Socket client) {
    try (client) {
      BufferedReader in = new BufferedReader(
          new InputStreamReader(client.getInputStream(), StandardCharsets.ISO_8859_1));
      String first = in.readLine();
      for (String line = first; line != null && !line.isEmpty(); line = in.readLine()) {
        // the head has no more to say
      }
      String body;
      try {
        body = "" + ask(Integer.parseInt(first.replaceAll(".*[?&]n=(\\d+).*", "$1")));
      } catch (SQLException | RuntimeException error) {
        body = error.toString();
      }
      byte[] bytes = body.getBytes(StandardCharsets.UTF_8);
      String head = "HTTP/1.1 200 OK\r\nContent-Length: " + bytes.length + "\r\n\r\n";
      client.getOutputStream().write((head + body).getBytes(StandardCharsets.UTF_8));
    } catch (IOException gone) {
      // the client has lost its interest
    }
  }

  public static void main(String[] arguments) throws IOException {
    JdbcAsker asker = new JdbcAsker(arguments[1]);
    try (ServerSocket listener = new ServerSocket(
        Integer.parseInt(arguments[0]), 64, InetAddress.getByName("127.0.0.1"))) {
      while (true) {
        Socket client = listener.accept();
        new Thread(() -> asker.serve(client)).start();
      }
    }
  }
}
