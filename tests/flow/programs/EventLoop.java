// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;

/**
 * EventLoop PORT PEER: a server with one thread. Each request rests for 5 ms while others are
 * read, then the same thread calls the peer for it and answers.
 */
public final class EventLoop {
  private record Due(String number, SocketChannel client, long at) {}

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  private static void finish(Due due, int peer) throws IOException {
    String head = "GET /x?n=" + due.number + " HTTP/1.1\r\nHost: peer\r\nConnection: close\r\n\r\n";
    try (SocketChannel call = SocketChannel.open(new InetSocketAddress("127.0.0.1", peer))) {
      call.write(ByteBuffer.wrap(ascii(head)));
      ByteBuffer answer = ByteBuffer.allocate(4096);
      while (call.read(answer) >= 0) {
        answer.clear();
      }
    }
    due.client.write(ByteBuffer.wrap(ascii("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")));
  }

  private static void read(SelectionKey key, ArrayDeque<Due> rests) throws IOException {
    SocketChannel client = (SocketChannel) key.channel();
    ByteBuffer buffer = ByteBuffer.allocate(8192);
    if (client.read(buffer) < 0) {
      client.close();
      return;
    }
    String head = new String(buffer.array(), 0, buffer.position(), StandardCharsets.US_ASCII);
    String number = head.substring(head.indexOf("n=") + 2, head.indexOf(" HTTP"));
    rests.add(new Due(number, client, System.nanoTime() + 5_000_000));
  }

  public static void main(String[] arguments) throws IOException {
    ServerSocketChannel server = ServerSocketChannel.open();
    server.bind(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])), 64);
    server.configureBlocking(false);
    Selector selector = Selector.open();
    server.register(selector, SelectionKey.OP_ACCEPT);
    ArrayDeque<Due> rests = new ArrayDeque<>();
    while (true) {
      selector.select(2);
      for (SelectionKey key : selector.selectedKeys()) {
        if (key.isReadable()) {
          read(key, rests);
          continue;
        }
        SocketChannel client = server.accept();
        client.configureBlocking(false);
        client.register(selector, SelectionKey.OP_READ);
      }
      selector.selectedKeys().clear();
      while (!rests.isEmpty() && rests.peek().at <= System.nanoTime()) {
        finish(rests.poll(), Integer.parseInt(arguments[1]));
      }
    }
  }
}
