import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import test, { type ExecutionContext } from 'ava';
import { openConntrack } from '../../../agent/host/conntrack.ts';
import { createNetns, deleteNetns } from '../../../netlink/netns.ts';
import { type Logger, silentLogger } from '../../../runtime/log.ts';

const OLD_OWNER = '127.0.0.2';
const OTHER = '127.0.0.3';
/** The listing of so many is longer than what a child process may print by default. */
const FLOWS = 8_000;

const SENDER = `
const socket = require('node:dgram').createSocket('udp4');
const [from, to, count] = [process.argv[1], process.argv[2], Number(process.argv[3])];
socket.bind(4000, from, async () => {
  for (let port = 10_000; port < 10_000 + count; port++) await new Promise((sent) => socket.send('x', port, to, sent));
  process.exit(0);
});`;

function node(t: ExecutionContext) {
  const name = `tke-test-ct-${randomBytes(4).toString('hex')}`;
  const netns = createNetns(name);
  t.teardown(() => {
    netns.close();
    deleteNetns(name);
  });
  const run = (input: string, ...argv: string[]): string =>
    execFileSync('nsenter', [`--net=/run/netns/${name}`, '--', ...argv], {
      input,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'ignore'],
      maxBuffer: 64 << 20,
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    });
  run('', 'ip', 'link', 'set', 'lo', 'up');
  // Connections are tracked where somebody asks for their state.
  run('table inet t { chain o { type filter hook output priority 0; ct state new accept; }; }', 'nft', '-f', '-');
  const send = (from: string, to: string, count: number) =>
    run('', process.execPath, '-e', SENDER, from, to, String(count));
  const entriesOf = (ip: string): number =>
    run('', 'conntrack', '-L', '-f', 'ipv4')
      .split('\n')
      .filter((line) => line.includes(`=${ip} `)).length;
  return { path: netns.path, send, entriesOf };
}

async function flushIn(netnsPath: string, ip: string): Promise<readonly unknown[]> {
  const warnings: unknown[] = [];
  const note = (_message: string, fields?: unknown): void => void warnings.push(fields);
  const log: Logger = { debug: note, info: note, warn: note, error: note, child: () => log };
  await openConntrack(log, { netnsPath }).flush([ip]);
  return warnings;
}

test('openConntrack: drops every entry of an address, on whatever side, and no other', async (t) => {
  const { path, send, entriesOf } = node(t);
  send(OLD_OWNER, OTHER, FLOWS);
  send('127.0.0.5', OLD_OWNER, 5);
  send('127.0.0.6', '127.0.0.7', 5);
  t.is(entriesOf(OLD_OWNER), FLOWS + 5);
  t.deepEqual(await flushIn(path, OLD_OWNER), []);
  t.is(entriesOf(OLD_OWNER), 0);
  t.is(entriesOf('127.0.0.6'), 5);
});

test('openConntrack: an address without entries is no fault, one that is none is told and holds nobody up', async (t) => {
  const { path } = node(t);
  t.deepEqual(await flushIn(path, OLD_OWNER), []);
  t.is((await flushIn(path, 'nonsense')).length, 4);
});

test('openConntrack: flushOrThrow refuses where entries may be left', async (t) => {
  const { path, send, entriesOf } = node(t);
  send(OLD_OWNER, OTHER, FLOWS);
  const conntrack = openConntrack(silentLogger, { netnsPath: path });
  await t.notThrowsAsync(conntrack.flushOrThrow([OLD_OWNER]));
  t.is(entriesOf(OLD_OWNER), 0);
  await t.throwsAsync(conntrack.flushOrThrow(['nonsense']), { message: /^conntrack --orig-src nonsense: / });
  const nowhere = openConntrack(silentLogger, { netnsPath: `${path}-gone` });
  await t.throwsAsync(nowhere.flushOrThrow([OLD_OWNER]), {
    message: new RegExp(`--orig-src ${OLD_OWNER}: .*No such file`),
  });
});
