// SPDX-License-Identifier: Apache-2.0

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Collections;
import java.util.HexFormat;
import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.servlets.DefaultServlet;
import org.apache.catalina.startup.Tomcat;

/**
 * TomcatServer PORT DIRECTORY: Tomcat as it comes, save that a connection may last for ever. It
 * answers with hashes of what it received, at /count with the number of fields; files of DIRECTORY stand below /static.
 */
public final class TomcatServer {
  public static void main(String[] arguments) throws Exception {
    Tomcat tomcat = new Tomcat();
    File base = new File(arguments[1]);
    tomcat.setBaseDir(base.getPath());
    Connector connector = new Connector();
    connector.setPort(Integer.parseInt(arguments[0]));
    connector.setProperty("address", "127.0.0.1");
    connector.setProperty("maxKeepAliveRequests", "-1");
    connector.setProperty("maxSwallowSize", "-1");
    tomcat.setConnector(connector);
    Context context = tomcat.addContext("", base.getPath());
    Tomcat.addServlet(context, "hashes", new Hashes()).addMapping("/*");
    Wrapper files = Tomcat.addServlet(context, "files", new DefaultServlet());
    files.addInitParameter("listings", "false");
    files.addMapping("/static/*");
    tomcat.start();
    tomcat.getServer().await();
  }

  private static final class Hashes extends HttpServlet {
    @Override
    protected void service(HttpServletRequest request, HttpServletResponse response) throws IOException {
      if (request.getRequestURI().equals("/pieces")) {
        try (OutputStream out = response.getOutputStream()) {
          for (int i = 0; i < 20; i++) {
            out.write(("piece " + i + "\n").repeat(i + 1).getBytes(StandardCharsets.US_ASCII));
            response.flushBuffer();
          }
        }
        return;
      }
      String said =
          request.getRequestURI().equals("/count")
              ? Collections.list(request.getHeaderNames()).size() + " " + (request.getHeader("traceparent") != null)
              : HexFormat.of().formatHex(digest(request));
      byte[] text = said.getBytes(StandardCharsets.US_ASCII);
      response.setContentLength(text.length);
      response.getOutputStream().write(text);
    }

    private static byte[] digest(HttpServletRequest request) throws IOException {
      try {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        digest.update((request.getMethod() + " " + request.getRequestURI()).getBytes(StandardCharsets.US_ASCII));
        for (String name : Collections.list(request.getHeaderNames())) {
          digest.update((name + ": " + request.getHeader(name)).getBytes(StandardCharsets.ISO_8859_1));
        }
        byte[] part = new byte[65_536];
        InputStream in = request.getInputStream();
        for (int size = in.read(part); size >= 0; size = in.read(part)) {
          digest.update(part, 0, size);
        }
        return digest.digest();
      } catch (NoSuchAlgorithmException error) {
        throw new IOException(error);
      }
    }
  }
}
