import { constants } from 'node:os';
import test, { type ExecutionContext } from 'ava';
import { NetlinkError } from '../../netlink/netlink-error.ts';
import type { Request } from '../../netlink/request.ts';
import { createRtnetlink } from '../../netlink/rtnetlink.ts';
import {
  NLM_F_ACK,
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
  NLM_F_DUMP_INTR,
  NLM_F_MULTI,
  NLMSG_DONE,
  NLMSG_ERROR,
} from '../../netlink/uapi/netlink.ts';
import { RTM_DELLINK, RTM_NEWLINK, RTM_NEWROUTE, RTM_NEWRULE } from '../../netlink/uapi/rtnetlink.ts';
import { bodyOf, readCapture } from './support/capture.ts';
import { type Answer, attr, int32s, type ScriptedMessage, ScriptedSocket } from './support/scripted-socket.ts';

const { EEXIST, EINVAL, ENOBUFS, ENOENT, ESRCH } = constants.errno;
const ROUTE_BYTES = bodyOf(readCapture('route-host.answer'));
const RULE_BYTES = bodyOf(readCapture('rule-from.answer'));
const route: ScriptedMessage = { type: RTM_NEWROUTE, flags: NLM_F_MULTI, payload: ROUTE_BYTES };
const rule = (priority: number): ScriptedMessage => {
  const payload = Buffer.concat([RULE_BYTES.subarray(0, 12), attr(6, int32s(priority))]);
  return { type: RTM_NEWRULE, flags: NLM_F_MULTI, payload };
};
const done: ScriptedMessage = { type: NLMSG_DONE, flags: NLM_F_MULTI, payload: int32s(0) };
const ack: ScriptedMessage = { type: NLMSG_ERROR, flags: NLM_F_CAPPED, payload: int32s(0, 0, 0, 0, 0) };
const refusal = (errno: number, seq?: number): ScriptedMessage => ({
  type: NLMSG_ERROR,
  flags: NLM_F_CAPPED,
  payload: int32s(-errno, 0, 0, 0, 0),
  ...(seq === undefined ? {} : { seq }),
});
const FILTER = { family: 2, table: 3999 };

function open(...answers: readonly Answer[]) {
  const socket = new ScriptedSocket(answers);
  return { socket, rtnl: createRtnetlink(socket) };
}

function failure(t: ExecutionContext, run: () => unknown): NetlinkError {
  const error = t.throws(run, { instanceOf: NetlinkError });
  return error ?? new NetlinkError({ errno: 0, op: '', request: '' });
}

test('list: joins the datagrams of a dump', (t) => {
  const { rtnl } = open([[route, route], [route], [done]]);
  t.is(rtnl.route.list(FILTER).length, 3);
});

test('list: reads again when a message in the middle says that the dump was interrupted', (t) => {
  const marked = { ...route, flags: NLM_F_MULTI | NLM_F_DUMP_INTR };
  const { rtnl, socket } = open([[route], [marked], [route], [done]], [[route, done]]);
  t.is(rtnl.route.list(FILTER).length, 1);
  t.is(socket.written.length, 2);
});

test('list: gives up with EAGAIN when every dump is interrupted', (t) => {
  const marked = { ...done, flags: NLM_F_MULTI | NLM_F_DUMP_INTR };
  const { rtnl, socket } = open(...Array.from({ length: 9 }, () => [[route, marked]]));
  t.is(failure(t, () => rtnl.route.list(FILTER)).code, 'EAGAIN');
  t.is(socket.written.length, 5);
});

test('list: reads the error of a dump, and its text, from NLMSG_DONE', (t) => {
  const text = attr(1, Buffer.from('Unsupported attribute in dump request\0'));
  const failed = {
    type: NLMSG_DONE,
    flags: NLM_F_MULTI | NLM_F_ACK_TLVS,
    payload: Buffer.concat([int32s(-EINVAL), text]),
  };
  const { rtnl } = open([[failed]]);
  const error = failure(t, () => rtnl.route.list(FILTER));
  t.is(error.code, 'EINVAL');
  t.is(error.message, 'EINVAL: ip route show table 3999: Unsupported attribute in dump request (RTM_GETROUTE)');
});

test('list: is empty when the table does not exist', (t) => {
  const { rtnl } = open([[{ ...done, payload: int32s(-ENOENT) }]]);
  t.deepEqual(rtnl.route.list(FILTER), []);
});

test('list: leaves out what an older kernel did not filter', (t) => {
  const { rtnl } = open([[route, done]]);
  t.deepEqual(rtnl.route.list({ family: 2, table: 7 }), []);
});

test('list: ignores answers to somebody else and to earlier requests', (t) => {
  const { rtnl } = open([
    [
      { ...route, portid: 1 },
      { ...route, seq: 777 },
    ],
    [{ ...done, seq: 777 }],
    [route, done],
  ]);
  t.is(rtnl.route.list(FILTER).length, 1);
});

test('list: opens a new socket after a timeout, so that late answers find nobody', (t) => {
  const { rtnl, socket } = open([[route]], [[route, route, done]]);
  const error = failure(t, () => rtnl.route.list(FILTER));
  t.is(error.code, 'ETIMEDOUT');
  t.deepEqual(socket.events, ['reopen', 'close']);
  t.is(rtnl.route.list(FILTER).length, 2);
});

test('list: refuses a message that is longer than its datagram', (t) => {
  const bytes = Buffer.alloc(32);
  bytes.writeUInt32LE(64, 0);
  const { rtnl, socket } = open([bytes]);
  t.is(failure(t, () => rtnl.route.list(FILTER)).code, 'EBADMSG');
  t.deepEqual(socket.events, ['reopen', 'close']);
});

test('list: refuses a message whose length is less than its header, and ends', (t) => {
  const { rtnl } = open([Buffer.alloc(64)]);
  t.is(failure(t, () => rtnl.route.list(FILTER)).code, 'EBADMSG');
});

test('list: refuses a route whose attributes are broken', (t) => {
  const payload = Buffer.concat([ROUTE_BYTES.subarray(0, 12), Buffer.from([1, 0, 1, 0])]);
  const { rtnl } = open([[{ ...route, payload }]]);
  t.is(failure(t, () => rtnl.route.list(FILTER)).code, 'EBADMSG');
});

test('skipUnreadable: passes over the broken ones among many, and describes them; not beyond its call', (t) => {
  const broken = { ...route, payload: Buffer.concat([ROUTE_BYTES.subarray(0, 12), Buffer.from([1, 0, 1, 0])]) };
  const answers = [[broken, route, broken, route, done]];
  const { rtnl } = open(answers, answers, [Array.from({ length: 100 }, () => broken), [route, done]], answers);
  const skipped = () => rtnl.skipUnreadable(() => rtnl.route.list(FILTER).length);
  const text = 'RTM_GETROUTE: route: an attribute is shorter than its header or reaches beyond the message';
  t.deepEqual(skipped(), { result: 2, unreadable: [text, text] });
  t.deepEqual(skipped(), { result: 2, unreadable: [text, text] }, 'each call has its own');
  const many = skipped();
  t.is(many.result, 1);
  t.is(many.unreadable.length, 16);
  t.is(failure(t, () => rtnl.route.list(FILTER)).code, 'EBADMSG');
});

test('list: reports lost answers and starts again', (t) => {
  const { rtnl } = open([ENOBUFS], [[route, done]]);
  t.is(failure(t, () => rtnl.route.list(FILTER)).code, 'ENOBUFS');
  t.is(rtnl.route.list(FILTER).length, 1);
});

test('rule.list: believes one reading in one piece', (t) => {
  const { rtnl, socket } = open([[rule(5), rule(6)], [done]]);
  t.is(rtnl.rule.list({ family: 2 }).length, 2);
  t.is(socket.written.length, 1);
});

test('rule.list: reads until two agree when it came in pieces', (t) => {
  const { rtnl, socket } = open(
    [[rule(5)], [rule(7)], [done]],
    [[rule(5), rule(6)], [rule(7)], [done]],
    [[rule(5), rule(6)], [rule(7)], [done]],
  );
  t.deepEqual(
    rtnl.rule.list({ family: 2 }).map(({ priority }) => priority),
    [5, 6, 7],
  );
  t.is(socket.written.length, 3);
});

test('rule.list: gives up with EAGAIN when no two readings agree', (t) => {
  const { rtnl } = open(...Array.from({ length: 20 }, (_, i) => [[rule(i)], [rule(1000)], [done]]));
  t.is(failure(t, () => rtnl.rule.list({ family: 2 })).code, 'EAGAIN');
});

test('rule.list: reads once when confirmation is not wanted, twice when it always is', (t) => {
  const never = open([[rule(5)], [rule(6)], [done]]);
  never.rtnl.rule.list({ family: 2 }, { confirm: 'never' });
  t.is(never.socket.written.length, 1);
  const always = open([[rule(5), done]], [[rule(5), done]]);
  always.rtnl.rule.list({ family: 2 }, { confirm: 'always' });
  t.is(always.socket.written.length, 2);
});

test('add: names the attribute at the offset, and the request as an ip line', (t) => {
  // nlmsghdr 16, rtmsg 12, then dst: the second attribute is the gateway.
  const tlvs = Buffer.concat([attr(1, Buffer.from('Nexthop has invalid gateway\0')), attr(2, int32s(36))]);
  const payload = Buffer.concat([int32s(-EINVAL, 0, 0, 0, 0), tlvs]);
  const { rtnl } = open([[{ type: NLMSG_ERROR, flags: NLM_F_CAPPED | NLM_F_ACK_TLVS, payload }]]);
  const error = failure(t, () => rtnl.route.add({ dst: '10.0.0.0/8', gateway: '192.0.2.1' }));
  t.deepEqual(error.extack, { message: 'Nexthop has invalid gateway', offset: 36, attribute: 'gateway' });
  t.is(error.op, 'RTM_NEWROUTE');
  t.is(error.request, 'ip route add 10.0.0.0/8 via 192.0.2.1');
});

test('add: names an attribute inside another one', (t) => {
  // metrics begins at 16 + 12 + 8; its second inner attribute at 4 + 8 behind that.
  const payload = Buffer.concat([int32s(-EINVAL, 0, 0, 0, 0), attr(2, int32s(48))]);
  const { rtnl } = open([[{ type: NLMSG_ERROR, flags: NLM_F_CAPPED | NLM_F_ACK_TLVS, payload }]]);
  const error = failure(t, () => rtnl.route.add({ dst: '10.0.0.0/8', metrics: { mtu: 1400, hoplimit: 999 } }));
  t.deepEqual(error.extack, { offset: 48, attribute: 'metrics.hoplimit' });
});

test('add: names a missing attribute', (t) => {
  const payload = Buffer.concat([int32s(-EINVAL, 0, 0, 0, 0), attr(5, int32s(5))]);
  const { rtnl } = open([[{ type: NLMSG_ERROR, flags: NLM_F_CAPPED | NLM_F_ACK_TLVS, payload }]]);
  const error = failure(t, () => rtnl.route.add({ dst: '10.0.0.0/8' }));
  t.deepEqual(error.extack, { missing: 'gateway' });
  t.true(error.message.includes('missing attribute gateway'), error.message);
});

test('add: finds the text behind an echoed request too', (t) => {
  const answer = readCapture('error-gateway.answer');
  const { rtnl } = open([[{ type: NLMSG_ERROR, flags: NLM_F_ACK_TLVS, payload: bodyOf(answer) }]]);
  const error = failure(t, () => rtnl.route.add({ dst: '10.1.0.0/16', gateway: '192.0.2.1' }));
  t.is(error.code, 'ENETUNREACH');
  t.is(error.extack?.message, 'Nexthop has invalid gateway');
});

const routes = (count: number): Request[] =>
  Array.from({ length: count }, (_, i) => ({
    object: 'route',
    verb: 'add',
    spec: { dst: `10.0.${i >> 8}.${i & 255}/32` },
  }));

test('execute: asks for an acknowledgement of the last message of a write only', (t) => {
  const { rtnl, socket } = open([[ack]], [[ack]]);
  t.is(rtnl.execute(routes(200)).length, 200);
  const acks = socket.written.map((write) => {
    const flags: boolean[] = [];
    for (let at = 0; at < write.length; at += write.readUInt32LE(at)) {
      flags.push((write.readUInt16LE(at + 6) & NLM_F_ACK) !== 0);
    }
    return flags;
  });
  t.deepEqual(
    acks.map((flags) => flags.length),
    [128, 72],
  );
  t.true(acks.every((flags) => flags.at(-1) === true && flags.filter(Boolean).length === 1));
});

test('execute: tells which messages failed and that the others did not', (t) => {
  const { rtnl } = open([[refusal(EEXIST, 1)], [refusal(ESRCH, 3)], [ack]]);
  const outcomes = rtnl.execute(routes(4));
  t.deepEqual(
    outcomes.map((outcome) => (outcome.kind === 'error' ? outcome.error.code : outcome.kind)),
    ['EEXIST', 'ok', 'ESRCH', 'ok'],
  );
  const [first] = outcomes;
  t.is(first?.kind === 'error' ? first.error.request : '', 'ip route add 10.0.0.0/32');
});

test('execute: sends the rest when one request cannot be written', (t) => {
  const { rtnl, socket } = open([[ack]]);
  const [a, b] = routes(2);
  const broken: Request = { object: 'route', verb: 'add', spec: { dst: '10.0.0.0/33' } };
  const outcomes = rtnl.execute([...(a === undefined ? [] : [a]), broken, ...(b === undefined ? [] : [b]), broken]);
  t.deepEqual(
    outcomes.map((outcome) => (outcome.kind === 'error' ? outcome.error.code : outcome.kind)),
    ['ok', 'EINVAL', 'ok', 'EINVAL'],
  );
  t.is(socket.written.length, 1);
});

test('execute: sends nothing behind a failure when told to stop', (t) => {
  const { rtnl, socket } = open([[ack]], [[refusal(EEXIST)]]);
  const outcomes = rtnl.execute(routes(4), { stopOnError: true });
  t.deepEqual(
    outcomes.map(({ kind }) => kind),
    ['ok', 'error', 'skipped', 'skipped'],
  );
  t.is(socket.written.length, 2);
});

test('execute: does nothing for no requests', (t) => {
  const { rtnl, socket } = open();
  t.deepEqual(rtnl.execute([]), []);
  t.is(socket.written.length, 0);
});

test('every call: fails with EBADF after close, and sends nothing', (t) => {
  const { rtnl, socket } = open([[ack]]);
  rtnl.close();
  rtnl.close();
  t.is(failure(t, () => rtnl.route.add({ dst: '10.0.0.0/8' })).code, 'EBADF');
  t.is(socket.written.length, 0);
  t.deepEqual(socket.events, ['close']);
});

test('deleteInBackground: links that wait are deleted together, one by one where the kernel refuses that', async (t) => {
  // Two lanes are busy with one link each; the others wait and go together.
  const script = [[[ack]], [[refusal(constants.errno.EOPNOTSUPP)]], [[ack]], [[refusal(constants.errno.ENODEV)]]];
  const socket = new ScriptedSocket(script);
  const rtnl = createRtnetlink(socket);
  const outcomes = await Promise.allSettled([1, 2, 3, 4].map((ifindex) => rtnl.link.deleteInBackground(ifindex)));
  t.deepEqual(
    outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.message : 'deleted')),
    ['deleted', 'deleted', 'deleted', 'ENODEV: ip link del dev if4: no such device (RTM_DELLINK)'],
  );
  const types = socket.written.map((write) => {
    const found: number[] = [];
    for (let at = 0; at < write.length; at += write.readUInt32LE(at)) found.push(write.readUInt16LE(at + 4));
    return found;
  });
  const [set, remove] = [RTM_NEWLINK, RTM_DELLINK];
  t.deepEqual(types, [[remove], [remove], [set, set, remove], [remove], [remove]]);
});

test('deleteInBackground: rejects with the error of the kernel, by name', async (t) => {
  const rtnl = createRtnetlink(new ScriptedSocket([[[refusal(constants.errno.ENODEV)]]]));
  const error = await t.throwsAsync(rtnl.link.deleteInBackground(9), { instanceOf: NetlinkError });
  t.is(error?.message, 'ENODEV: ip link del dev if9: no such device (RTM_DELLINK)');
});
