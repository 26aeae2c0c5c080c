// Holds a UDP socket that nobody reads: packets are delivered to it and thrown away when it is full. Ends by SIGTERM.
import { createSocket } from 'node:dgram';

const socket = createSocket('udp4');
socket.bind(Number(process.argv[2] ?? 9), () => {
  process.stdout.write('ready\n', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
});
