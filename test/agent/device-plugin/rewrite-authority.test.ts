import http2 from 'node:http2';
import net from 'node:net';
import test from 'ava';
import { replacerOf, rewriteAuthority } from '../../../agent/device-plugin/rewrite-authority.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const OTHER = '/var/lib/kubelet/device-plugins/tke-eni-ip.sock';

test('rewriteAuthority: lets requests through whose host is a path, and changes nothing else', async (t) => {
  const dir = createTempDir('authority');
  const path = dir.join('tke-eni-ip.sock');
  const seen: string[] = [];
  const server = http2.createServer();
  server.on('stream', (stream: http2.ServerHttp2Stream, headers) => {
    seen.push(String(headers[':authority']));
    stream.respond({ ':status': 200 });
    stream.pipe(stream);
  });
  const listener = net.createServer((connection) =>
    server.emit('connection', rewriteAuthority(connection, [path, OTHER])),
  );
  await new Promise<void>((resolve) => listener.listen(path, resolve));
  const client = http2.connect('http://localhost', { createConnection: () => net.connect(path) });
  t.teardown(() => {
    client.destroy();
    listener.close();
    dir.close();
  });
  const body = 'x'.repeat(100_000);
  for (const authority of [path, path, OTHER, 'localhost']) {
    const request = client.request({ ':method': 'POST', ':path': '/a', ':authority': authority });
    request.end(body);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    t.is(Buffer.concat(chunks).toString(), body);
  }
  const mended = path.replaceAll('/', '-');
  t.deepEqual(seen, [mended, mended, OTHER.replaceAll('/', '-'), 'localhost']);
});

test('replacerOf: leaves bytes alone that do not have the path, and the chunk it was given', (t) => {
  const replace = replacerOf(['/a/b.sock']);
  const other = Buffer.from('/a/c.sock');
  t.is(replace(other), other);
  const given = Buffer.from('<</a/b.sock>>/a/b.sock');
  t.is(replace(given).toString(), '<<-a-b.sock>>-a-b.sock');
  t.is(given.toString(), '<</a/b.sock>>/a/b.sock');
});
