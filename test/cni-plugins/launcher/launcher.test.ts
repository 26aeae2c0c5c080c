import { createHash } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { decodeMessage } from '../../../agent/api/codec.ts';
import { OUTCOME, RUN_REQUEST } from '../../../agent/api/messages.ts';
import { encodeFrame, FLAG, FRAME, FrameReader } from '../../../cni-plugins/client/frames.ts';
import { COMPLETE_PROGRAM, UNUSABLE_MARKER } from '../../../cni-plugins/launcher/names.ts';
import { RUNS } from '../../../sim/support/seed.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { hasLauncher } from '../../support/executables.ts';
import { withSeed } from '../../support/with-seed.ts';
import { damaged, HEADERS, type LaunchPlace, openLaunchPlace, replyFrames, SETTINGS, serveBytes } from './launch.ts';

const launcherTest = hasLauncher ? test : test.skip;
const PRINT = OUTCOME.OUTCOME_PRINT;

function place(t: ExecutionContext): LaunchPlace {
  const opened = openLaunchPlace();
  t.teardown(opened.close);
  return opened;
}

/** What the stand-in of the complete program prints of its standard input. */
function hashOf(stdin: string): string {
  return createHash('sha256').update(stdin).digest('hex').slice(0, 16);
}

launcherTest('launcher: sends the call as it was made, and prints the answer with its exit code', async (t) => {
  const at = place(t);
  const requests: unknown[] = [];
  t.teardown(
    await serveBytes(at.socketPath, (socket, bytes) => {
      const frames = new FrameReader().push(bytes.subarray(24));
      const data = frames === 'too-large' ? [] : frames.filter(({ type }) => type === FRAME.DATA);
      const message = Buffer.concat(data.map(({ payload }) => payload));
      const { name, env, stdin } = decodeMessage(RUN_REQUEST, message.subarray(5));
      requests.push({
        length: message.readUInt32BE(1) === message.length - 5,
        name,
        env: [...env].sort(),
        stdin: Buffer.from(stdin).toString(),
      });
      socket.write(replyFrames({ outcome: PRINT, exitCode: 1, stdout: Buffer.from('{"code":7}') }));
    }),
  );
  const env = { CNI_COMMAND: 'DEL', CNI_IFNAME: 'eth0', OTHER: 'not sent' };
  const ended = await at.call({ name: 'tke-eni-ipamc', env });
  t.deepEqual(ended, { code: 1, stdout: '{"code":7}', stderr: '' });
  t.deepEqual(requests, [
    { length: true, name: 'tke-eni-ipamc', env: ['CNI_COMMAND=DEL', 'CNI_IFNAME=eth0'], stdin: at.conf },
  ]);
});

launcherTest(
  'launcher: takes a long answer in any pieces, padded, with acknowledgements to give in between',
  async (t) => {
    const at = place(t);
    const text = 'x'.repeat(300_000);
    t.teardown(
      await serveBytes(at.socketPath, (socket) => {
        const padded = encodeFrame(FRAME.DATA, FLAG.PADDED, 1, Buffer.from([3, 0, 0, 0]));
        const ping = encodeFrame(FRAME.PING, 0, 0, Buffer.alloc(8));
        const bytes = Buffer.concat([
          SETTINGS,
          padded,
          ping,
          replyFrames({ outcome: PRINT, stdout: Buffer.from(text) }, 9_001),
        ]);
        for (let from = 0; from < bytes.length; from += 7_777) socket.write(bytes.subarray(from, from + 7_777));
      }),
    );
    const ended = await at.call();
    t.is(ended.code, 0);
    t.is(ended.stdout, text);
  },
);

type Server = (socket: Socket) => void;
const data = (payload: Uint8Array, flags = 0) => encodeFrame(FRAME.DATA, flags, 1, payload);

/** What no launcher understands: it becomes the complete program, with the call as it was. */
const DOUBTS: Readonly<Record<string, Server>> = {
  'the connection is closed': (socket) => socket.end(),
  'it answers no HTTP/2': (socket) => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'.repeat(20)),
  'a frame is too long': (socket) => socket.write(Buffer.from('ffffff000000000001', 'hex')),
  'the stream is reset': (socket) =>
    socket.write(Buffer.concat([SETTINGS, encodeFrame(FRAME.RST_STREAM, 0, 1, Buffer.alloc(4))])),
  'it goes away and took nothing': (socket) => socket.write(encodeFrame(FRAME.GOAWAY, 0, 0, Buffer.alloc(8))),
  'an older agent has no Run': (socket) =>
    socket.write(
      Buffer.concat([SETTINGS, encodeFrame(FRAME.HEADERS, FLAG.END_HEADERS | FLAG.END_STREAM, 1, Buffer.from([0x88]))]),
    ),
  'the answer ends early': (socket) =>
    socket.write(Buffer.concat([SETTINGS, HEADERS, data(Buffer.from('0000000009', 'hex'), FLAG.END_STREAM)])),
  'the message is compressed': (socket) =>
    socket.write(Buffer.concat([SETTINGS, HEADERS, data(Buffer.from('0100000000', 'hex'))])),
  'the message is no protobuf': (socket) =>
    socket.write(Buffer.concat([SETTINGS, HEADERS, data(Buffer.from('00000000030f0f0f', 'hex'))])),
  'the padding is longer than the frame': (socket) =>
    socket.write(Buffer.concat([SETTINGS, data(Buffer.from([9, 0]), FLAG.PADDED)])),
  'the agent says so': (socket) => socket.write(replyFrames({ outcome: OUTCOME.OUTCOME_RUN_YOURSELF })),
  'a later agent has another outcome': (socket) => socket.write(replyFrames({ outcome: 9, stdout: Buffer.from('{}') })),
  'the exit code is none of CNI': (socket) => socket.write(replyFrames({ outcome: PRINT, exitCode: 7 })),
};

for (const [why, answer] of Object.entries(DOUBTS)) {
  launcherTest(`launcher: becomes the complete program when ${why}`, async (t) => {
    const at = place(t);
    t.teardown(await serveBytes(at.socketPath, answer));
    const { code, stdout } = await at.call();
    t.is(code, 3);
    t.regex(stdout, new RegExp(`^complete .*${hashOf(at.conf)} ADD timed\n$`));
  });
}

/** Calls for which nobody is asked. */
const UNASKED: Readonly<Record<string, (at: LaunchPlace) => Parameters<LaunchPlace['call']>[0]>> = {
  'it has an argument': () => ({ args: ['--version'] }),
  'no agent listens': () => ({}),
  'the configuration is long': (at) => ({ stdin: at.conf.padEnd(200_000) }),
  'the variables are long': () => ({ env: { CNI_COMMAND: 'ADD', CNI_ARGS: 'x'.repeat(100_000) } }),
  'the address is one of TCP': (at) => ({ stdin: at.conf.replace(/unix:[^"]*/, '127.0.0.1:9') }),
  'the address is no text': () => ({ stdin: '{"backend": 3}' }),
  'the path is too long': (at) => ({ stdin: at.conf.replace(/unix:[^"]*/, `unix:/${'x'.repeat(200)}`) }),
};

for (const [why, options] of Object.entries(UNASKED)) {
  launcherTest(`launcher: becomes the complete program when ${why}, which gets the whole input`, async (t) => {
    const at = place(t);
    if (why !== 'no agent listens') {
      t.teardown(await serveBytes(at.socketPath, (socket) => socket.write(replyFrames({ outcome: PRINT }))));
    }
    const call = options(at);
    const { code, stdout } = await at.call(call);
    t.is(code, 3);
    t.true(stdout.includes(hashOf(call?.stdin ?? at.conf)), stdout);
  });
}

launcherTest('launcher: does not wait for long for an agent that accepts calls and says nothing', async (t) => {
  const at = place(t);
  t.teardown(await serveBytes(at.socketPath, () => {}));
  const { code } = await at.call();
  t.is(code, 3);
});

launcherTest('launcher: answers code 11 by itself where no complete program can run', async (t) => {
  const at = place(t);
  writeFileSync(join(at.dir, UNUSABLE_MARKER), 'libc.so.6: version GLIBC_2.28 not found\n');
  const marked = await at.call();
  t.is(marked.code, 1);
  t.like(JSON.parse(marked.stdout), { cniVersion: '1.0.0', code: 11 });
  t.regex(marked.stdout, /C library/);
  rmSync(join(at.dir, UNUSABLE_MARKER));
  rmSync(join(at.dir, COMPLETE_PROGRAM));
  const absent = await at.call();
  t.is(absent.code, 1);
  t.like(JSON.parse(absent.stdout), { code: 11 });
});

launcherTest(
  'launcher: prints an answer that is whole, and ends in order, whatever the bytes on the socket',
  async (t) => {
    await withSeed(t, async (seed) => {
      const random = seededRandom(seed);
      const at = place(t);
      const whole = replyFrames({ outcome: PRINT, stdout: Buffer.from(ANSWER) }, 7);
      let sent = { bytes: whole, isCut: false };
      t.teardown(await serveBytes(at.socketPath, (socket) => socket.end(sent.bytes)));
      for (let run = 0; run < STREAMS * RUNS; run++) {
        sent = damaged(whole, random);
        const { code, stdout } = await at.call();
        if (code === 3) t.true(stdout.startsWith('complete '), stdout);
        else t.true(code === 0 || code === 1, `${code}`);
        // What was changed may be an answer of another text; what was cut is none.
        if (sent.isCut && code !== 3) t.is(stdout, ANSWER);
      }
    });
  },
);

const ANSWER = '{"ips":[]}';
const STREAMS = 30;
