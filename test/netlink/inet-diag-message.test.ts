import test from 'ava';
import { ByteWriter } from '../../netlink/byte-writer.ts';
import { CodecError } from '../../netlink/codec-error.ts';
import { INET_DIAG, INET_DIAG_REQUEST } from '../../netlink/inet-diag-message.ts';
import { bodyOf, readCapture } from './support/capture.ts';

const V4 = { family: 2, src: '127.0.0.1', sport: 50_001, dst: '127.0.0.1', dport: 61_677 };
const V6 = { family: 10, src: '::1', sport: 50_001, dst: '::1', dport: 61_677 };

for (const [file, want] of [
  ['sock-diag', { ...V4, state: 1, uid: 0, inode: 243_288 }],
  ['sock-diag-v6', { ...V6, state: 1, uid: 0, inode: 244_148 }],
] as const) {
  test(`INET_DIAG: ${file}, as the kernel sent it, both ways`, (t) => {
    const bytes = bodyOf(readCapture(`${file}.answer`));
    const message = INET_DIAG.decode(bytes);
    t.like(message, want);
    const writer = new ByteWriter(512);
    INET_DIAG.write(writer, message);
    t.deepEqual(Buffer.from(writer.written()), bytes);
  });
}

test('INET_DIAG_REQUEST: the request for one socket is that of ss, byte for byte', (t) => {
  const bytes = bodyOf(readCapture('sock-destroy.request'));
  const cookie0 = INET_DIAG_REQUEST.decode(bytes).cookie0;
  const writer = new ByteWriter(512);
  INET_DIAG_REQUEST.write(writer, { ...V4, protocol: 6, cookie0 });
  t.deepEqual(Buffer.from(writer.written()), bytes);
});

test('INET_DIAG_REQUEST: the request for a list is read and written with what it does not know', (t) => {
  const bytes = bodyOf(readCapture('sock-diag.request'));
  const message = INET_DIAG_REQUEST.decode(bytes);
  t.like(message, { family: 2, protocol: 6, src: '0.0.0.0', sport: 0 });
  t.is(message.unknown.length, 1);
  const writer = new ByteWriter(512);
  INET_DIAG_REQUEST.write(writer, message);
  t.deepEqual(Buffer.from(writer.written()), bytes);
});

test('INET_DIAG_REQUEST: refuses what is no address, and a port that is none', (t) => {
  const writer = new ByteWriter(512);
  t.throws(() => INET_DIAG_REQUEST.write(writer, { ...V4, src: 'localhost' }), {
    instanceOf: CodecError,
    message: /src/,
  });
  t.throws(() => INET_DIAG_REQUEST.write(writer, { ...V4, sport: 65_536 }), {
    instanceOf: CodecError,
    message: /sport/,
  });
});
