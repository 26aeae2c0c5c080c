import { connect } from 'node:net';
import { known, unknown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';
import type { SocketFacts } from './doctor-facts.ts';

const TIMEOUT_MS = 2_000;

/** Tries whether somebody takes connections on the agent's socket. Never rejects. */
export function readSocket(path: string): Promise<Known<SocketFacts>> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (problem: string | undefined) => {
      socket.destroy();
      resolve(known({ path, problem }));
    };
    socket.setTimeout(TIMEOUT_MS, () => end('it does not take the connection within 2 s'));
    socket.once('connect', () => end(undefined));
    socket.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EACCES' || error.code === 'EPERM') {
        socket.destroy();
        resolve(unknown(`${path} is root's alone`, 'run as root'));
      } else end(problemOf(error));
    });
  });
}

function problemOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'there is no such socket';
  return code === 'ECONNREFUSED' ? 'it has ended' : message;
}
