import { spawn } from 'node:child_process';
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { encodeMessage } from '../../../agent/api/codec.ts';
import { RUN_REPLY } from '../../../agent/api/messages.ts';
import type { RunReplyInit } from '../../../agent/api/service.ts';
import { encodeFrame, FLAG, FRAME } from '../../../cni-plugins/client/frames.ts';
import { COMPLETE_PROGRAM } from '../../../cni-plugins/launcher/names.ts';
import { LAUNCHER_PATH } from '../../support/executables.ts';
import { createTempDir } from '../../support/temp-dir.ts';

/** How a call of the launcher ended. */
type Ended = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

/** A folder with the launcher under a name of the executables, and a program that tells how it was called. */
export type LaunchPlace = {
  readonly dir: string;
  readonly socketPath: string;
  readonly conf: string;
  call(options?: CallOptions): Promise<Ended>;
  close(): void;
};

type CallOptions = {
  readonly name?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
};

/** The stand-in of the complete program. It prints its arguments, a hash of its input, CNI_COMMAND, and whether it got a time. */
const COMPLETE = `#!/bin/sh
input=$(cat | sha256sum | cut -c1-16)
echo "complete $(tr '\\\\0' ' ' < /proc/$$/cmdline | cut -d' ' -f3-) $input $CNI_COMMAND \${TKE_ENI_SPENT_MS:+timed}"
exit 3
`;

/** Makes the folder. @param launcher Path of the launcher to call. */
export function openLaunchPlace(launcher: string = LAUNCHER_PATH): LaunchPlace {
  const folder = createTempDir('launch');
  const dir = folder.path;
  const socketPath = join(dir, 'a.sock');
  for (const name of ['tke-route-eni', 'tke-eni-ipamc']) copyFileSync(launcher, join(dir, name));
  writeFileSync(join(dir, COMPLETE_PROGRAM), COMPLETE);
  chmodSync(join(dir, COMPLETE_PROGRAM), 0o755);
  const conf = JSON.stringify({ cniVersion: '1.0.0', name: 'n', type: 'tke-route-eni', backend: `unix:${socketPath}` });
  return {
    dir,
    socketPath,
    conf,
    call: ({ name = 'tke-route-eni', args = [], env = { CNI_COMMAND: 'ADD' }, stdin = conf } = {}) =>
      callProgram(join(dir, name), args, env, stdin),
    close: () => folder.close(),
  };
}

async function callProgram(
  path: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  stdin: string,
): Promise<Ended> {
  const child = spawn(path, args, { env: { PATH: '/usr/bin:/bin', ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.on('error', () => {});
  child.stdin.end(stdin);
  let stdout = '';
  let stderr = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString('latin1');
  });
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('latin1');
  });
  const { promise, resolve } = Promise.withResolvers<number | null>();
  child.on('close', resolve);
  return { code: await promise, stdout, stderr };
}

/** Serves bytes: `answer` gets each connection once its request is complete. Returns what closes the server. */
export async function serveBytes(
  socketPath: string,
  answer: (socket: Socket, request: Buffer) => void,
): Promise<() => void> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    let request: Buffer = Buffer.alloc(0);
    let isAnswered = false;
    socket.on('data', (chunk: Buffer) => {
      request = Buffer.concat([request, chunk]);
      if (isAnswered || !hasEnded(request)) return;
      isAnswered = true;
      answer(socket, request);
    });
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(socketPath, resolve);
  await promise;
  return () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
}

/** Reports whether the last frame of the request, DATA with END_STREAM, has arrived. */
function hasEnded(bytes: Buffer): boolean {
  for (let at = PREFACE_BYTES; at + 9 <= bytes.length; ) {
    const end = at + 9 + bytes.readUIntBE(at, 3);
    const isLast = bytes[at + 3] === FRAME.DATA && ((bytes[at + 4] ?? 0) & FLAG.END_STREAM) !== 0;
    if (isLast) return end <= bytes.length;
    at = end;
  }
  return false;
}

const PREFACE_BYTES = 24;

/** Encodes a reply as the frames of a server: SETTINGS, HEADERS, DATA of at most `frameBytes`. */
export function replyFrames(reply: RunReplyInit, frameBytes = 16_384): Buffer {
  const message = encodeMessage(RUN_REPLY, reply);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  const bytes = Buffer.concat([prefix, message]);
  const data: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += frameBytes)
    data.push(encodeFrame(FRAME.DATA, 0, 1, bytes.subarray(at, at + frameBytes)));
  return Buffer.concat([SETTINGS, HEADERS, ...data]);
}

/** An empty SETTINGS frame. */
export const SETTINGS = encodeFrame(FRAME.SETTINGS, 0, 0, Buffer.alloc(0));
/** A HEADERS frame; nobody reads its block. */
export const HEADERS = encodeFrame(FRAME.HEADERS, FLAG.END_HEADERS, 1, Buffer.from([0x88]));

/** Cuts bytes off, repeats some, replaces all, or changes one. */
export function damaged(bytes: Buffer, random: () => number): { readonly bytes: Buffer; readonly isCut: boolean } {
  const at = Math.floor(random() * bytes.length);
  const dice = random();
  if (dice < 0.4) return { bytes: bytes.subarray(0, at), isCut: true };
  if (dice < 0.6) {
    const rest = bytes.subarray(Math.floor(random() * bytes.length));
    return { bytes: Buffer.concat([bytes.subarray(0, at), rest]), isCut: false };
  }
  if (dice < 0.7) {
    return { bytes: Buffer.from(Array.from({ length: 200 }, () => Math.floor(random() * 256))), isCut: false };
  }
  const changed = Buffer.from(bytes);
  changed[at] = Math.floor(random() * 256);
  return { bytes: changed, isCut: false };
}
