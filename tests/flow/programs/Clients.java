// SPDX-License-Identifier: Apache-2.0

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Clients PORT CASE…: HttpURLConnection and java.net.http. Waits for a byte on stdin, then sends
 * the same bytes each time it is run; prints what each case received, as a hash.
 */
public final class Clients {
  private static final byte[] LOOKALIKE =
      "GET / HTTP/1.1\r\nHost: x\r\ntraceparent: none\r\n\r\n".repeat(60).getBytes();
  private static final byte[] UPLOAD = new byte[50_000_000];
  private static final byte[] PART = new byte[5_000_000];
  private static String base;
  private static int port;
  private static MessageDigest received;

  public static void main(String[] arguments) throws Exception {
    port = Integer.parseInt(arguments[0]);
    base = "http://127.0.0.1:" + port;
    new Random(20260101).nextBytes(UPLOAD);
    new Random(20260102).nextBytes(PART);
    System.out.println("ready");
    System.in.read();
    for (int i = 1; i < arguments.length; i++) {
      received = MessageDigest.getInstance("SHA-256");
      switch (arguments[i]) {
        case "url" -> url();
        case "http" -> http();
        case "h2c" -> h2c();
        case "echo" -> echo();
        default -> throw new IllegalArgumentException(arguments[i]);
      }
      System.out.println(arguments[i] + " " + HexFormat.of().formatHex(received.digest()));
    }
    System.exit(0); // threads of clients linger
  }

  // ---- HttpURLConnection ----------------------------------------------------------

  /** chunk: -1 fixed length, 0 buffered, else chunked. */
  private static byte[] call(String method, String path, byte[] body, int chunk, boolean expect)
      throws IOException {
    HttpURLConnection call = (HttpURLConnection) URI.create(base + path).toURL().openConnection();
    call.setRequestMethod(method);
    call.setReadTimeout(60_000);
    if (expect) {
      call.setRequestProperty("Expect", "100-continue");
    }
    if (body != null) {
      call.setDoOutput(true);
      if (chunk > 0) {
        call.setChunkedStreamingMode(chunk);
      } else if (chunk < 0) {
        call.setFixedLengthStreamingMode(body.length);
      }
      try (OutputStream out = call.getOutputStream()) {
        out.write(body);
      }
    }
    try (InputStream in = call.getInputStream()) {
      byte[] answer = in.readAllBytes();
      received.update(answer);
      return answer;
    }
  }

  private static void check(byte[] body, byte[] answer) throws Exception {
    String sent = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(body));
    if (!new String(answer).equals(sent)) {
      throw new IOException("the peer received something else");
    }
  }

  private static void url() throws Exception {
    for (int i = 0; i < 1000; i++) {
      call("GET", "/k/" + i + "?secret=" + i, null, 0, false);
    }
    for (String path : new String[] {"/drops", "/chunked", "/large", "/plain"}) {
      call("GET", path, null, 0, false);
      call("POST", path, LOOKALIKE, 0, false);
      call("POST", path, LOOKALIKE, 512, false);
    }
    call("POST", "/expected", LOOKALIKE, -1, true);
    check(UPLOAD, call("PUT", "/upload", UPLOAD, -1, false));
    check(PART, call("PUT", "/upload", PART, 65_536, false));
  }

  // ---- java.net.http ----------------------------------------------------------------

  private static byte[] send(HttpClient client, String method, String path, BodyPublisher body, boolean expect)
      throws Exception {
    HttpRequest request =
        HttpRequest.newBuilder(URI.create(base + path)).method(method, body).expectContinue(expect).build();
    byte[] answer = client.send(request, BodyHandlers.ofByteArray()).body();
    received.update(answer);
    return answer;
  }

  private static void http() throws Exception {
    HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    for (int i = 0; i < 200; i++) {
      send(client, "GET", "/j/" + i, BodyPublishers.noBody(), false);
    }
    for (String path : new String[] {"/drops", "/chunks", "/large", "/plain"}) {
      send(client, "POST", path, BodyPublishers.ofByteArray(LOOKALIKE), false);
      send(client, "POST", path, BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(LOOKALIKE)), false);
    }
    send(client, "POST", "/expected", BodyPublishers.ofByteArray(LOOKALIKE), true);
    check(PART, send(client, "PUT", "/upload", BodyPublishers.ofByteArray(PART), false));
    check(UPLOAD, send(client, "PUT", "/upload", BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(UPLOAD)), false));
  }

  /** As it comes: it asks for HTTP/2 and is content with the answer of a server that speaks none. */
  private static void h2c() throws Exception {
    HttpClient client = HttpClient.newHttpClient();
    send(client, "GET", "/h2c", BodyPublishers.noBody(), false);
    send(client, "POST", "/h2c", BodyPublishers.ofByteArray(LOOKALIKE), false);
  }

  private static final class Echo implements WebSocket.Listener {
    private final LinkedBlockingQueue<ByteBuffer> messages = new LinkedBlockingQueue<>();
    private ByteBuffer parts = ByteBuffer.allocate(200_000);

    @Override
    public CompletionStage<?> onBinary(WebSocket socket, ByteBuffer data, boolean last) {
      parts.put(data);
      if (last) {
        messages.add(parts.flip());
        parts = ByteBuffer.allocate(200_000);
      }
      socket.request(1);
      return CompletableFuture.completedFuture(null);
    }
  }

  private static void echo() throws Exception {
    Echo echo = new Echo();
    WebSocket socket =
        HttpClient.newHttpClient().newWebSocketBuilder()
            .buildAsync(URI.create("ws://127.0.0.1:" + port + "/ws"), echo).join();
    for (int size : new int[] {0, 1, 40, LOOKALIKE.length}) {
      ByteBuffer sent = ByteBuffer.wrap(LOOKALIKE, 0, size);
      socket.sendBinary(sent.duplicate(), true).join();
      if (!sent.equals(echo.messages.poll(20, TimeUnit.SECONDS))) {
        throw new IOException("another echo");
      }
    }
    socket.sendClose(WebSocket.NORMAL_CLOSURE, "").join();
  }
}
