import test from 'ava';
import { decodeMessage, encodeMessage } from '../../../../agent/api/codec.ts';
import { AGENT_EVENT, type AgentEventInit } from '../../../../agent/api/ops-messages.ts';
import {
  describeAgentEvent,
  eventKindNumber,
  eventKindText,
} from '../../../../cli/commands/watch/describe-agent-event.ts';
import { createNames } from '../../../../cli/commands/watch/names.ts';
import { renderWatchEvent } from '../../../../cli/commands/watch/render-watch.ts';
import {
  AGENT_KINDS,
  matchesFilter,
  type WatchEvent,
  type WatchFilter,
} from '../../../../cli/commands/watch/watch-event.ts';
import { VirtualClock } from '../../../support/virtual-clock.ts';
import { JOURNAL_SAMPLE, LEASE_SAMPLE } from '../../agent/samples.ts';

const EVENT: WatchEvent = {
  atMs: 0,
  source: 'kernel',
  kind: 'route',
  change: '+',
  text: '10.0.2.10/32 dev eni0',
  isOurs: true,
  isNoise: false,
  owner: { kind: 'pod', name: 'default/web-0', containerId: 'a1b2c3d4', ips: ['10.0.2.10'], eniId: 'eni-1' },
};
const ENI_EVENT: WatchEvent = { ...EVENT, owner: { kind: 'eni', eniId: 'eni-1', ifname: 'eth1', table: 4003 } };
const ALL: WatchFilter = { kinds: [], isAll: false };

test('matchesFilter: a Pod by part of its name, its address, or four and more characters of its container id', (t) => {
  for (const pod of ['web', 'default/web-0', '10.0.2.10', 'a1b2']) t.true(matchesFilter(EVENT, { ...ALL, pod }), pod);
  for (const pod of ['a1b', '10.0.2.1', 'other', 'eni-1']) t.false(matchesFilter(EVENT, { ...ALL, pod }), pod);
  t.false(matchesFilter(ENI_EVENT, { ...ALL, pod: 'eni-1' }));
});

test('matchesFilter: an ENI by id, interface or table, with the Pods on it', (t) => {
  t.true(matchesFilter(EVENT, { ...ALL, eni: 'eni-1' }));
  for (const eni of ['eni-1', 'eth1', '4003']) t.true(matchesFilter(ENI_EVENT, { ...ALL, eni }), eni);
  for (const eni of ['eni-2', 'eth2', '400']) t.false(matchesFilter(ENI_EVENT, { ...ALL, eni }), eni);
});

test('matchesFilter: noise only when asked for, lost events always', (t) => {
  const noise = { ...EVENT, isNoise: true };
  t.false(matchesFilter(noise, ALL));
  t.true(matchesFilter(noise, { ...ALL, isAll: true }));
  t.true(matchesFilter({ ...EVENT, kind: 'lost' }, { kinds: ['rule'], isAll: false, pod: 'nobody' }));
  t.false(matchesFilter(EVENT, { ...ALL, kinds: ['rule'] }));
});

const decoded = (init: AgentEventInit) => decodeMessage(AGENT_EVENT, encodeMessage(AGENT_EVENT, init));

test('describeAgentEvent: joins a sandbox with its addresses, and says what was dropped', (t) => {
  const names = createNames(() => JOURNAL_SAMPLE, new VirtualClock());
  const { containerId } = LEASE_SAMPLE;
  const [lost, add] = describeAgentEvent(
    decoded({ kind: 1, subject: 'default/web-0', containerId, dropped: 2 }),
    names,
  );
  t.is(lost?.kind, 'lost');
  t.like(add?.owner, { kind: 'pod', name: 'default/web-0', ips: ['10.0.2.10', 'fd00:10:0:2::a'] });
  t.true(add !== undefined && matchesFilter(add, { ...ALL, pod: '10.0.2.10' }));
});

test('eventKindText: names every kind, and takes one of a later release for a status', (t) => {
  for (const kind of AGENT_KINDS) t.is(eventKindText(eventKindNumber(kind) ?? 0), kind);
  t.is(eventKindText(99), 'status');
  t.is(eventKindNumber('route'), undefined);
});

test('createNames: reads again for a name that it does not know, but not for every one of a burst', async (t) => {
  let reads = 0;
  let leases = [LEASE_SAMPLE].slice(0, 0);
  const clock = new VirtualClock();
  const names = createNames(() => {
    reads += 1;
    return { leases, enis: JOURNAL_SAMPLE.enis };
  }, clock);
  for (let index = 0; index < 100; index++) names.podOfIp(`10.9.9.${index}`);
  t.is(reads, 1);
  leases = [LEASE_SAMPLE];
  t.is(names.podOfIp('10.0.2.10'), undefined);
  t.like(names.podOfSandbox(LEASE_SAMPLE.containerId, LEASE_SAMPLE.ifName), { name: 'default/web-0' }, 'of an event');
  t.is(reads, 2);
  t.like(names.podOfIp('10.0.2.10'), { name: 'default/web-0' });
  leases = [];
  t.is(names.podOfIp('10.0.2.11'), undefined);
  t.is(reads, 2);
  await clock.advance(100);
  t.like(names.podOfIp('10.0.2.10'), { name: 'default/web-0' });
  leases = [];
  await clock.advance(1_000);
  names.podOfIp('10.9.9.9');
  t.like(names.podOfIp('10.0.2.10'), { name: 'default/web-0' }, 'one that is gone is still named');
});

test('renderWatchEvent: control characters of others’ names do not reach the terminal', (t) => {
  const line = renderWatchEvent({ ...EVENT, text: 'alias "\u001b[2J"' }, false);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: there must be none.
  t.notRegex(line.trimEnd(), /[\u0000-\u001f]/);
});
