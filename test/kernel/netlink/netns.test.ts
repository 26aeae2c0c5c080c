import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import {
  createNetns,
  createUnnamedNetns,
  deleteNetns,
  NetnsError,
  openNetns,
  withNetns,
} from '../../../netlink/netns.ts';
import { Child } from '../../../sim/support/child.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { TestNetns } from './support/test-netns.ts';

const OWN = '/proc/thread-self/ns/net';
const uniqueName = () => `tke-test-${randomBytes(5).toString('hex')}`;

test('createNetns: makes a namespace that ip netns lists and enters', (t) => {
  using made = new TestNetns();
  t.true(execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' }).includes(made.name));
  t.deepEqual(
    made.ipJson('link show').map((link) => link['ifname']),
    ['lo'],
  );
});

test('createNetns: refuses a name that is taken, and leaves it alone', (t) => {
  using made = new TestNetns();
  const error = t.throws(() => createNetns(made.name), { instanceOf: NetnsError });
  t.is(error?.code, 'EEXIST');
  t.is(made.ipJson('link show').length, 1);
});

for (const name of ['', '.', '..', 'a/b', 'a\0b']) {
  test(`createNetns: refuses the name ${JSON.stringify(name)}`, (t) => {
    t.is(t.throws(() => createNetns(name), { instanceOf: NetnsError })?.code, 'INVALID_NAME');
  });
}

test('createUnnamedNetns: makes a namespace that others enter by its descriptor, and comes back', (t) => {
  const before = readlinkSync(OWN);
  using made = createUnnamedNetns();
  t.is(readlinkSync(OWN), before);
  const path = `/proc/${process.pid}/fd/${made.fd}`;
  t.not(readlinkSync(path), before);
  const links = JSON.parse(execFileSync('nsenter', [`--net=${path}`, 'ip', '-j', 'link'], { encoding: 'utf8' }));
  t.deepEqual(
    links.map((link: { ifname: string }) => link.ifname),
    ['lo'],
  );
});

test('deleteNetns: removes the name, and succeeds when it is not there', (t) => {
  const name = uniqueName();
  createNetns(name).close();
  deleteNetns(name);
  deleteNetns(name);
  t.is(t.throws(() => openNetns(`/run/netns/${name}`), { instanceOf: NetnsError })?.code, 'ENOENT');
});

for (const path of ['/etc/passwd', '/run', '/proc/self/ns/mnt']) {
  test(`openNetns: refuses ${path}`, (t) => {
    t.is(t.throws(() => openNetns(path), { instanceOf: NetnsError })?.code, 'NOT_A_NETNS');
  });
}

test('openNetns: refuses a FIFO at once', (t) => {
  const dir = createTempDir('fifo');
  t.teardown(() => dir.close());
  const path = dir.join('fifo');
  execFileSync('mkfifo', [path]);
  t.is(t.throws(() => openNetns(path), { instanceOf: NetnsError })?.code, 'NOT_A_NETNS');
});

test('openNetns: does not open what can be no namespace: an open may have effects', async (t) => {
  const dir = createTempDir('fifo');
  t.teardown(() => dir.close());
  execFileSync('mkfifo', [dir.join('fifo')]);
  // Waits in open(2) until somebody opens the other end.
  const writer = new Child(['/bin/sh', '-c', 'exec 9> "$0"; echo opened; exec sleep 60', dir.join('fifo')]);
  t.teardown(() => writer.stop('SIGKILL'));
  await waitUntil(() => readFileSync(`/proc/${writer.pid}/stat`, 'utf8').includes(') S '), {
    what: 'a waiting writer',
  });
  t.is(t.throws(() => openNetns(dir.join('fifo')), { instanceOf: NetnsError })?.code, 'NOT_A_NETNS');
  await sleep(300);
  t.is(writer.stdout, '');
});

test('withNetns: runs in the namespace and returns, also when the function throws', (t) => {
  using made = new TestNetns();
  const host = readlinkSync(OWN);
  const inside = withNetns(made.netns, () => readlinkSync(OWN));
  t.not(inside, host);
  t.is(readlinkSync(OWN), host);
  t.throws(() => withNetns(made.netns, () => fail()), { message: 'inside' });
  t.is(readlinkSync(OWN), host);
});

test('withNetns: nests', (t) => {
  using outer = new TestNetns();
  using inner = new TestNetns();
  const [first, second, third] = withNetns(outer.netns, () => [
    readlinkSync(OWN),
    withNetns(inner.netns, () => readlinkSync(OWN)),
    readlinkSync(OWN),
  ]);
  t.is(first, third);
  t.not(first, second);
});

test('withNetns: refuses a promise', (t) => {
  using made = new TestNetns();
  const host = readlinkSync(OWN);
  // The type forbids it; a cast stands for JavaScript.
  const run = (() => Promise.resolve(1)) as unknown as () => number;
  t.throws(() => withNetns(made.netns, run), { instanceOf: TypeError });
  t.is(readlinkSync(OWN), host);
});

test('withNetns: synchronous file access reaches the sysctls of the namespace', (t) => {
  using made = new TestNetns();
  const path = '/proc/sys/net/ipv4/conf/lo/forwarding';
  const before = readFileSync(path, 'utf8').trim();
  const other = before === '1' ? '0' : '1';
  withNetns(made.netns, () => writeFileSync(path, other));
  t.is(
    withNetns(made.netns, () => readFileSync(path, 'utf8').trim()),
    other,
  );
  t.is(readFileSync(path, 'utf8').trim(), before);
});

test('withNetns: refuses a descriptor that is no namespace', (t) => {
  t.is(t.throws(() => withNetns({ fd: 0 }, () => 1), { instanceOf: NetnsError })?.code, 'EINVAL');
});

function fail(): never {
  throw new Error('inside');
}
