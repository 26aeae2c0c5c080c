// Asks a listener of HTTPS until a line comes on standard input; runs as a child process in a namespace. Arguments: address,
// server name, how many ask at once, and the files of authorities. Each request is a handshake of its own; one more connection
// is kept. Then prints `{"handshakes", "failures", "serials", "kept"}`; failures are texts, at most 10.
import { readFileSync } from 'node:fs';
import { Agent, type RequestOptions, request } from 'node:https';
import type { TLSSocket } from 'node:tls';

const [host = '', servername = '', askers = '1', ...files] = process.argv.slice(2);
const MOST_FAILURES = 10;
const ca = files.map((file) => readFileSync(file, 'utf8'));
const failures: string[] = [];
const serials = new Set<string>();
const keeping = new Agent({ keepAlive: true, maxSockets: 1 });
const keptSockets = new Set<unknown>();
let handshakes = 0;
let kept = 0;
let isEnding = false;
process.stdin.once('data', () => {
  isEnding = true;
});

/** One request to its end. */
function ask(agent: RequestOptions['agent']): Promise<TLSSocket | undefined> {
  return new Promise((resolve) => {
    const fail = (error: Error): void => {
      if (failures.length < MOST_FAILURES) failures.push(error.message);
      resolve(undefined);
    };
    const options = { host, port: 443, servername, ca, agent, headers: { host: servername }, timeout: 10_000 };
    const asked = request(options, (answer) => {
      if (answer.statusCode !== 200) return fail(new Error(`answered ${answer.statusCode}`));
      const socket = answer.socket as TLSSocket;
      serials.add(socket.getPeerCertificate().serialNumber);
      answer.on('error', fail).on('end', () => resolve(socket));
      answer.resume();
    });
    asked.on('timeout', () => asked.destroy(new Error('timeout'))).on('error', fail);
    asked.end();
  });
}

async function askAnew(): Promise<void> {
  while (!isEnding) if ((await ask(false)) !== undefined) handshakes += 1;
}

async function askOnOne(): Promise<void> {
  while (!isEnding) {
    keptSockets.add(await ask(keeping));
    kept += 1;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  if (keptSockets.size > 1) failures.push(`the kept connection was made ${keptSockets.size} times`);
}

await Promise.all([askOnOne(), ...Array.from({ length: Number(askers) }, askAnew)]);
process.stdout.write(JSON.stringify({ handshakes, failures, serials: serials.size, kept }), () => process.exit(0));
