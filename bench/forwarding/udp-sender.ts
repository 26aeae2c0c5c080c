// Sends 32-byte UDP packets as fast as one core can; runs inside a network namespace.
// Each line "<milliseconds>" on standard input starts one burst; the answer is "<packets sent> <milliseconds taken>".
//
// One write(2) a packet on a connected socket, as an application in a Pod sends. On a veth the kernel forwards a packet within the
// send, so this one core does the whole path.
import { writeSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { DataType, define, open } from 'ffi-rs';

const [host = '', port = '9'] = process.argv.slice(2);
const PAYLOAD_BYTES = 32;
/** Packets between two looks at the clock. */
const STRIDE = 64;
const AF_INET = 2;
const SOCK_DGRAM = 2;

const { I32, U8Array } = DataType;
open({ library: 'libc', path: '' });
// Node's own dgram sockets do not say their descriptor.
const libc = define({
  socket: { library: 'libc', retType: I32, paramsType: [I32, I32, I32] },
  connect: { library: 'libc', retType: I32, paramsType: [I32, U8Array, I32] },
}) as unknown as Readonly<Record<'socket' | 'connect', (args: unknown[]) => number>>;

const payload = Buffer.alloc(PAYLOAD_BYTES, 0x55);
const fd = libc.socket([AF_INET, SOCK_DGRAM, 0]);
const address = Buffer.allocUnsafeSlow(16).fill(0);
address.writeUInt16LE(AF_INET, 0);
address.writeUInt16BE(Number(port), 2);
address.set(host.split('.').map(Number), 4);
if (fd < 0 || libc.connect([fd, address, address.length]) !== 0) throw new Error(`cannot connect to ${host}`);

function burst(ms: number): string {
  const start = performance.now();
  let sent = 0;
  while (performance.now() - start < ms) {
    for (let packet = 0; packet < STRIDE; packet++) writeSync(fd, payload);
    sent += STRIDE;
  }
  return `${sent} ${performance.now() - start}`;
}

createInterface({ input: process.stdin })
  .on('line', (line) => process.stdout.write(`${burst(Number(line))}\n`))
  .on('close', () => process.exit(0));
process.stdout.write('ready\n');
