import test from 'ava';
import fc from 'fast-check';
import type { EventInput } from '../../kube/events/event-object.ts';
import { LastReports, Reporter } from '../../kube/reporter.ts';
import { type LogFields, silentLogger } from '../../runtime/log.ts';
import { assertLaw } from '../support/law.ts';

const KEY = fc.constantFrom('a', 'b', 'c');
const ITEMS = fc.array(fc.constantFrom<string>('full', 'refused', 'unknown', 'taken'), { maxLength: 5 });
const STEPS = fc.array(fc.tuple(KEY, fc.oneof(ITEMS, fc.constant('forget' as const))), { maxLength: 40 });

test('LastReports: a note returns what the last one of its key lacked, and nothing when both are the same', async (t) => {
  await assertLaw(t, (inner) =>
    fc.property(STEPS, (steps) => {
      const last = new LastReports();
      const model = new Map<string, readonly string[]>();
      for (const [key, items] of steps) {
        const before = model.get(key) ?? [];
        if (items === 'forget') {
          last.forget(key);
          model.delete(key);
          continue;
        }
        const isSame = before.every((one) => items.includes(one)) && items.every((one) => before.includes(one));
        const added = items.filter((one) => !before.includes(one));
        inner.deepEqual(last.note(key, items), isSame ? undefined : added);
        model.set(key, items);
        const open = [...model].filter(([, its]) => its.length > 0).map(([name]) => name);
        inner.deepEqual([...last.keys()].sort(), open.sort());
      }
    }),
  );
});

test('LastReports: any number of keys is reported once each, however often all are noted', (t) => {
  const last = new LastReports();
  const keys = Array.from({ length: 250_000 }, (_, nth) => `${nth}`);
  let reports = 0;
  for (let pass = 0; pass < 3; pass++) for (const key of keys) if (last.note(key, ['full']) !== undefined) reports += 1;
  t.is(reports, keys.length);
  for (const key of keys) last.note(key, []);
  t.deepEqual(last.keys(), []);
});

test('LastReports: another RequestId is no other text, whatever stands before it', (t) => {
  const last = new LastReports();
  t.deepEqual(last.note('a', ['refused, RequestId=one-1', 'RequestId=one-2']), [
    'refused, RequestId=one-1',
    'RequestId=one-2',
  ]);
  t.is(last.note('a', ['refused, RequestId=two-1', 'RequestId=two-2']), undefined);
});

/** A reporter, with what it has written: events, and lines of the log. */
function openReporter() {
  const written: string[] = [];
  const lines: { readonly text: string; readonly fields: LogFields | undefined }[] = [];
  const write = (text: string, fields?: LogFields): void => void lines.push({ text, fields });
  const events = { record: ({ involved, reason }: EventInput) => void written.push(`${involved.name} ${reason}`) };
  return {
    reporter: new Reporter('a Node', { events, log: { ...silentLogger, info: write, warn: write } }),
    written,
    lines,
  };
}

const NODE = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'uid-1' };
const FULL = { reason: 'SubnetExhausted', message: 'no address is free' };
const TAKEN = { reason: 'InstanceTaken', message: 'another Node has it' };

test('Reporter: a problem that lasts is one event and one line, and its end is a line', (t) => {
  const { reporter, written, lines } = openReporter();
  for (const problems of [[FULL], [FULL], [TAKEN, FULL], [FULL], [], [], [FULL]]) reporter.report(NODE, problems);
  t.deepEqual(written, ['n1 SubnetExhausted', 'n1 InstanceTaken', 'n1 SubnetExhausted']);
  t.deepEqual(
    lines.map(({ text }) => text),
    ['a Node has a problem', 'a Node has a problem', 'a Node has no more problems', 'a Node has a problem'],
  );
  t.deepEqual(lines[0]?.fields, { node: 'n1', ...FULL });
});

test('Reporter: a new object of the same name is reported again, and so is one that was forgotten', (t) => {
  const { reporter, written } = openReporter();
  reporter.report(NODE, [FULL]);
  reporter.report({ ...NODE, uid: 'uid-2' }, [FULL]);
  t.is(written.length, 2);
  reporter.forget('n1');
  reporter.report({ ...NODE, uid: 'uid-2' }, [FULL]);
  t.is(written.length, 3);
});

test('Reporter: objects of one name in two namespaces are two', (t) => {
  const { reporter, written } = openReporter();
  const service = { apiVersion: 'v1', kind: 'Service', name: 'web' };
  for (const namespace of ['a', 'b', 'a']) reporter.report({ ...service, namespace }, [FULL]);
  t.is(written.length, 2);
  t.deepEqual(reporter.names(), ['a/web', 'b/web']);
});
