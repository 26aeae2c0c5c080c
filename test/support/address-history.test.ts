import test from 'ava';
import { AddressHistory, type HoldKind } from './address-history.ts';

const IP = '10.0.1.4';
const on = (node: string, owner: string) => ({ node, owner });
const open = (...kinds: readonly HoldKind[]) => new AddressHistory({ kinds, cooldownMs: 30_000 });
const texts = (history: AddressHistory) => history.judge().map(({ auditor, text }) => `${auditor} ${text}`);

test('AddressHistory.judge: tells of both when an address is in two sandboxes, once', (t) => {
  const history = open('sandbox');
  history.begin(0, IP, 'sandbox', on('n1', 'a'));
  history.begin(1, IP, 'sandbox', on('n1', 'a'));
  t.deepEqual(texts(history), []);
  history.begin(2, IP, 'sandbox', on('n2', 'b'));
  t.deepEqual(texts(history), [`A1 ${IP} is in two sandboxes, of a on n1 and of b on n2`]);
  t.deepEqual(texts(history), []);
});

test('AddressHistory.judge: an address rests between two sandboxes, unless its connections were flushed on its node', (t) => {
  for (const [flushedMs, found] of [
    [undefined, [`A8 b has ${IP} 5000 ms after a`]],
    [4_000, [`A8 b has ${IP} 5000 ms after a`]],
    [12_000, []],
  ] as const) {
    const history = new AddressHistory({
      kinds: ['sandbox'],
      cooldownMs: 30_000,
      flushedMs: (_, node) => (node === 'n1' ? flushedMs : 60_000),
    });
    history.begin(0, IP, 'sandbox', on('n1', 'a'));
    history.end(10_000, IP, 'sandbox', on('n1', 'a'));
    history.begin(15_000, IP, 'sandbox', on('n1', 'b'));
    t.deepEqual(texts(history), found);
    history.end(16_000, IP, 'sandbox', on('n1', 'b'));
    history.begin(46_000, IP, 'sandbox', on('n1', 'c'));
    t.deepEqual(texts(history), []);
    history.end(50_000, IP, 'sandbox', on('n1', 'c'));
    history.begin(55_000, IP, 'sandbox', on('n2', 'd'));
    t.deepEqual(texts(history), [`A8 d has ${IP} 5000 ms after c`]);
  }
});

test('AddressHistory.judge: an address that is kept does not rest between two Pods of its name', (t) => {
  const history = new AddressHistory({ kinds: ['sandbox'], cooldownMs: 30_000, keptFor: () => 'a' });
  const owners = ['a#1', 'a#2', 'b#3', 'b#4', 'a#5'];
  for (const [at, owner] of owners.entries()) {
    history.begin(at * 10_000, IP, 'sandbox', on('n1', owner));
    history.end(at * 10_000 + 5_000, IP, 'sandbox', on('n1', owner));
  }
  t.deepEqual(
    texts(history),
    ['b#3', 'b#4', 'a#5'].map((owner, at) => `A8 ${owner} has ${IP} 5000 ms after ${owners[at + 1]}`),
  );
});

test('AddressHistory.judge: a sandbox lies within a lease and within an assignment of its node', (t) => {
  const history = open('cloud', 'journal', 'sandbox');
  history.begin(0, IP, 'cloud', on('n1', 'eni-1'));
  history.begin(1, IP, 'journal', on('n1', 'c1'));
  history.begin(2, IP, 'sandbox', on('n1', 'pod-1'));
  t.deepEqual(texts(history), []);
  history.end(3, IP, 'journal', on('n1', 'c1'));
  t.deepEqual(texts(history), [`A11 pod-1 has ${IP}, which its agent has not leased`]);
  history.begin(4, IP, 'journal', on('n1', 'c1'));
  history.look(5, 'cloud', [[IP, on('n2', 'eni-1')]]);
  t.deepEqual(texts(history), [`A2 pod-1 has ${IP}, which is not on its node`]);
  t.deepEqual(history.table(IP), [
    `${IP}  cloud    n1         0 to        5  eni-1`,
    `${IP}  journal  n1         1 to        3  c1`,
    `${IP}  sandbox  n1         2 to      now  pod-1`,
    `${IP}  journal  n1         4 to      now  c1`,
    `${IP}  cloud    n2         5 to      now  eni-1`,
  ]);
});

test('AddressHistory.judge: what is on offer nobody has', (t) => {
  const history = open('offered', 'journal');
  history.begin(0, IP, 'offered', on('n1', 'ipamd'));
  history.begin(1, IP, 'journal', on('n1', 'c1'));
  t.deepEqual(texts(history), [`A11 ${IP} is on offer, and c1 on n1 has it`]);
  history.end(1, IP, 'journal', on('n1', 'c1'));
  history.begin(1, IP, 'journal', on('n2', 'c2'));
  t.deepEqual(texts(history), []);
  history.end(2, IP, 'offered', on('n1', 'ipamd'));
  t.deepEqual(texts(history), []);
});

test('AddressHistory.end: leaves what others hold alone', (t) => {
  const history = open('sandbox');
  history.begin(0, IP, 'sandbox', on('n2', 'b'));
  history.end(1, IP, 'sandbox', on('n1', 'a'));
  t.like(history.held('sandbox'), [[IP, on('n2', 'b')]]);
});
