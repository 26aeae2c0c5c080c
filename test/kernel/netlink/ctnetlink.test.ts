import test from 'ava';
import { isNetlinkError } from '../../../netlink/netlink-error.ts';
import { IPS_ASSURED, TCP_CONNTRACK_ESTABLISHED } from '../../../netlink/uapi/nfnetlink-conntrack.ts';
import { openConnectionScene } from '../dataplane/connection-scene.ts';

const TUPLE = {
  ip: { srcV4: '10.0.0.1', dstV4: '10.0.0.2' },
  proto: { number: 6, sport: 5_001, dport: 80 },
};

test('openCtnetlink: lists entries of both families, in pieces, by their status', (t) => {
  const { ctnetlink, load } = openConnectionScene(t);
  const assured = Array.from(
    { length: 600 },
    (_, at) =>
      `-A -s 10.0.0.1 -d 10.0.0.2 -p tcp --sport ${5_000 + at} --dport 80 --state ESTABLISHED -u ASSURED -t 3000`,
  );
  load([
    ...assured,
    '-A -s fd00::1 -d fd00::2 -p tcp --sport 5 --dport 80 --state ESTABLISHED -u ASSURED -t 3000',
    '-A -s 10.0.0.1 -d 10.0.0.2 -p udp --sport 5 --dport 53 -t 3000',
  ]);
  const pieces = [...ctnetlink.list({ status: IPS_ASSURED, statusMask: IPS_ASSURED })];
  t.true(pieces.length > 1, `${pieces.length}`);
  const entries = pieces.flat();
  t.is(entries.length, 601);
  t.is(new Set(entries.map(({ tupleOrig }) => tupleOrig?.proto?.sport)).size, 601);
  t.deepEqual(entries.find(({ family }) => family === 10)?.tupleOrig?.ip, { srcV6: 'fd00::1', dstV6: 'fd00::2' });
  t.true(entries.every(({ protoInfo }) => protoInfo?.tcp?.state === TCP_CONNTRACK_ESTABLISHED));
  const others = [...ctnetlink.list({ status: 0, statusMask: IPS_ASSURED })].flat();
  t.deepEqual(
    others.map(({ tupleOrig }) => tupleOrig?.proto?.number),
    [17],
  );
});

test('openCtnetlink: changes entries of a zone and of none, and says which are gone', (t) => {
  const { ctnetlink, load, entries } = openConnectionScene(t);
  const entry = '-A -s 10.0.0.1 -d 10.0.0.2 -p tcp --sport 5001 --dport 80 --state ESTABLISHED -u ASSURED -t 3000';
  load([entry, `${entry} -w 7`]);
  const flags = { flags: 0x10, mask: 0x18 };
  const update = { family: 2, tupleOrig: TUPLE, protoInfo: { tcp: { flagsReply: flags } } };
  const gone = { ...update, tupleOrig: { ...TUPLE, proto: { ...TUPLE.proto, dport: 81 } } };
  const outcomes = ctnetlink.update([{ ...update, zone: 7 }, gone, { ...gone, zone: 7 }]);
  t.deepEqual(
    outcomes.map((outcome) => (outcome.kind === 'error' ? outcome.error.code : outcome.kind)),
    ['ok', 'ENOENT', 'ENOENT'],
  );
  const [first] = outcomes.flatMap((outcome) => (outcome.kind === 'error' ? [outcome.error] : []));
  t.true(isNetlinkError(first) && first.message.includes('conntrack -U -s 10.0.0.1 -d 10.0.0.2 -p 6'), first?.message);
  const found = new Map(entries().map(({ zone, protoInfo }) => [zone, protoInfo?.tcp]));
  // conntrack(8) makes entries with the flags 0x0a. What is left out stays, the state as well.
  t.like(found.get(7), { state: 3, flagsOriginal: { flags: 0x0a }, flagsReply: { flags: 0x12 } });
  t.like(found.get(undefined), { state: 3, flagsOriginal: { flags: 0x0a }, flagsReply: { flags: 0x0a } });
});
