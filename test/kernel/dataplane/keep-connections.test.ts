import { execFileSync } from 'node:child_process';
import test from 'ava';
import { applyOperations } from '../../../dataplane/apply.ts';
import { keepConnections } from '../../../dataplane/keep-connections.ts';
import { openNft } from '../../../dataplane/nft.ts';
import { inverseOf, type Operation } from '../../../dataplane/operation.ts';
import type { ConntrackMessage } from '../../../netlink/conntrack-message.ts';
import { IP_CT_TCP_FLAG_BE_LIBERAL } from '../../../netlink/uapi/nfnetlink-conntrack.ts';
import { openSysctl } from '../../../sysctl/sysctl.ts';
import { tcpBeLiberal } from '../../../sysctl/sysctl-key.ts';
import { openConnectionScene } from './connection-scene.ts';

/** Whether packets of either direction are valid whatever their sequence numbers are. */
const isLiberal = ({ protoInfo }: ConntrackMessage): readonly boolean[] =>
  [protoInfo?.tcp?.flagsOriginal, protoInfo?.tcp?.flagsReply].map(
    (side) => ((side?.flags ?? 0) & IP_CT_TCP_FLAG_BE_LIBERAL) !== 0,
  );

test('keepConnections: marks connections of both families, and changes nothing else of them', async (t) => {
  const { ctnetlink, connect, entries } = openConnectionScene(t);
  await connect('127.0.0.1');
  await connect('::1');
  const before = entries();
  t.deepEqual(before.map(isLiberal), [
    [false, false],
    [false, false],
  ]);
  t.deepEqual(await keepConnections(ctnetlink), { marked: 2, ended: 0 });
  const after = entries();
  t.deepEqual(after.map(isLiberal), [
    [true, true],
    [true, true],
  ]);
  const withoutFlags = ({ family, tupleOrig, status, protoInfo: { tcp } = {} }: ConntrackMessage) => ({
    ...{ family, tupleOrig, status },
    tcp: {
      ...tcp,
      flagsOriginal: (tcp?.flagsOriginal?.flags ?? 0) & ~8,
      flagsReply: (tcp?.flagsReply?.flags ?? 0) & ~8,
    },
  });
  t.deepEqual(after.map(withoutFlags), before.map(withoutFlags));
  t.deepEqual(await keepConnections(ctnetlink), { marked: 0, ended: 0 }, 'they are marked already');
});

const ENTRIES = [
  ['established', '-p tcp --sport 1 --dport 80 --state ESTABLISHED -u SEEN_REPLY,ASSURED', true],
  ['one side closed', '-p tcp --sport 2 --dport 80 --state CLOSE_WAIT -u SEEN_REPLY,ASSURED', true],
  ['both sides closed', '-p tcp --sport 3 --dport 80 --state TIME_WAIT -u SEEN_REPLY,ASSURED', false],
  ['only begun', '-p tcp --sport 4 --dport 80 --state SYN_RECV -u SEEN_REPLY', false],
  ['translated', '-p tcp --sport 5 --dport 80 --state ESTABLISHED -u SEEN_REPLY,ASSURED -n 10.0.0.9', false],
  ['in a zone', '-p tcp --sport 6 --dport 80 --state ESTABLISHED -u SEEN_REPLY,ASSURED -w 7', true],
  ['UDP', '-p udp --sport 7 --dport 53 -u SEEN_REPLY,ASSURED', false],
] as const;

test('keepConnections: marks those that may have been followed, and no others', async (t) => {
  const { ctnetlink, load, entries } = openConnectionScene(t);
  load(ENTRIES.map(([, options]) => `-A -s 10.0.0.1 -d 10.0.0.2 ${options} -t 3000`));
  const cleared = { flags: 0, mask: IP_CT_TCP_FLAG_BE_LIBERAL };
  const made = entries();
  t.is(made.length, ENTRIES.length);
  // conntrack(8) makes entries that are marked already.
  ctnetlink.update(
    made.map(({ family, tupleOrig = {}, zone }) => {
      const protoInfo = { tcp: { flagsOriginal: cleared, flagsReply: cleared } };
      return { family, tupleOrig, protoInfo, ...(zone !== undefined && { zone }) };
    }),
  );
  t.deepEqual(entries().flatMap(isLiberal).filter(Boolean), []);
  t.deepEqual(await keepConnections(ctnetlink), { marked: 3, ended: 0 });
  const marks = new Map(entries().map((entry) => [entry.tupleOrig?.proto?.sport, String(isLiberal(entry))]));
  for (const [at, [what, , isMarked]] of ENTRIES.entries()) t.is(marks.get(at + 1), `${isMarked},${isMarked}`, what);
});

test('keepConnections: a connection that ends meanwhile is no failure', async (t) => {
  const { ctnetlink, connect, run } = openConnectionScene(t);
  await connect('127.0.0.1');
  const endedMeanwhile = {
    ...ctnetlink,
    *list(filter: Parameters<typeof ctnetlink.list>[0]) {
      for (const piece of ctnetlink.list(filter)) {
        run('conntrack', '-F');
        yield piece;
      }
    },
  };
  t.deepEqual(await keepConnections(endedMeanwhile), { marked: 0, ended: 1 });
});

test('applyOperations: the setting is given back after the connections are marked, and not if they cannot be', async (t) => {
  const { ctnetlink, connect, test: scene } = openConnectionScene(t);
  const sysctl = openSysctl(scene.netns);
  const setting = () => sysctl.find(tcpBeLiberal());
  sysctl.set(tcpBeLiberal(), '1');
  await connect('127.0.0.1');
  const seen: unknown[] = [];
  const kernelThat = (isAble: boolean) => ({
    ...{ rtnetlink: scene.rtnl, sysctl, nft: openNft({ netnsPath: scene.netns.path }) },
    connections: {
      canKeep: () => true,
      keep: async () => {
        if (isAble) seen.push(await keepConnections(ctnetlink));
        seen.push(setting());
        return isAble;
      },
    },
  });
  const operation: Operation = {
    ...{ kind: 'set-sysctl', key: tcpBeLiberal(), value: '0', before: '1' },
    keepsConnections: true,
  };
  t.deepEqual(await applyOperations(kernelThat(false), [operation]), { done: [], skipped: [operation] });
  t.is(setting(), '1');
  t.deepEqual(await applyOperations(kernelThat(true), [operation]), { done: [operation], skipped: [] });
  t.is(setting(), '0');
  t.deepEqual(seen, ['1', { marked: 1, ended: 0 }, '1']);
  const inverse = inverseOf(operation);
  t.deepEqual(inverse, { kind: 'set-sysctl', key: tcpBeLiberal(), value: '1', before: '0' });
});

const KEEPER = `
const { openConnectionKeeper } = await import('./agent/fast-path/open-connection-keeper.ts');
const said = [];
const note = (level) => (message, fields) => void said.push([level, message, fields?.error?.code]);
const keeper = openConnectionKeeper({ info: note('info'), warn: note('warn') });
const results = [keeper.canKeep(), await keeper.keep(), keeper.canKeep(), await keeper.keep()];
console.log(JSON.stringify({ results, said }));`;

test('openConnectionKeeper: says once that connections cannot be marked, and does not try again', (t) => {
  const { test: netns } = openConnectionScene(t);
  const keep = (...before: readonly string[]) => {
    const argv = [
      `--net=/run/netns/${netns.name}`,
      '--',
      ...before,
      process.execPath,
      '--input-type=module',
      '--eval',
      KEEPER,
    ];
    return JSON.parse(execFileSync('nsenter', argv, { encoding: 'utf8' }));
  };
  const refused = keep('setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin', '--');
  t.deepEqual(refused.results, [true, false, false, false]);
  t.is(refused.said.length, 1);
  const [level, message, code] = refused.said[0];
  t.deepEqual([level, code], ['warn', 'EPERM']);
  t.regex(message, /Drain the node/);
  t.deepEqual(keep().results, [true, true, true, true]);
});
