import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { messageIn } from './http2.ts';
import type { RecordedCall } from './record-cni.ts';

const NO_BYTES = Buffer.alloc(0);
/** Milliseconds that a replayed ADD may take. */
const PATIENCE_MS = 40_000;

/** Sends what an executable sent, byte for byte but for the deadline, and returns the message that is answered. */
export async function replayClient(call: RecordedCall, socketPath: string): Promise<Buffer> {
  const [first = NO_BYTES, ...later] = call.turns
    .filter(({ from }) => from === 'client')
    .map(({ bytes }) => Buffer.from(bytes, 'hex'));
  const socket = connect(socketPath);
  socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`${call.name}: no answer`)));
  try {
    socket.write(call.deadline === undefined ? first : withDeadline(first, call.deadline.at, call.deadline.bytes));
    let received = NO_BYTES;
    for (;;) {
      const [chunk] = (await once(socket, 'data')) as [Buffer];
      // What it said to the server's settings, once they are there.
      if (received.length === 0) for (const bytes of later) socket.write(bytes);
      received = Buffer.concat([received, chunk]);
      const message = messageIn(received);
      if (message !== undefined) return message;
    }
  } finally {
    socket.destroy();
  }
}

/** Writes a deadline that is yet to come in the place of the recorded one; both are varints of six bytes. */
function withDeadline(sent: Buffer, at: number, bytes: number): Buffer {
  const copy = Buffer.from(sent);
  let rest = BigInt(Date.now() + PATIENCE_MS);
  for (let index = 0; index < bytes; index++) {
    const isLast = index === bytes - 1;
    copy.writeUInt8(Number(rest & 0x7fn) | (isLast ? 0 : 0x80), at + index);
    rest >>= 7n;
  }
  return copy;
}

/** A unix socket that answers each connection as a recorded agent did, and remembers what it was sent. */
type ReplayedAgent = { readonly received: readonly Buffer[]; close(): void };

/** Opens such a socket: the n-th connection is answered as the n-th call was. The caller closes it. */
export async function openReplayedAgent(calls: readonly RecordedCall[], socketPath: string): Promise<ReplayedAgent> {
  const received: Buffer[] = [];
  const server = createServer((socket) => {
    const at = received.push(NO_BYTES) - 1;
    const answer = (calls[at]?.turns ?? []).filter(({ from }) => from === 'server').map(({ bytes }) => bytes);
    let isAnswered = false;
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      const all = Buffer.concat([received[at] ?? NO_BYTES, chunk]);
      received[at] = all;
      if (isAnswered || messageIn(all) === undefined) return;
      isAnswered = true;
      socket.write(Buffer.from(answer.join(''), 'hex'));
    });
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return { received, close: () => void server.close() };
}
