import test from 'ava';
import { instanceIdOf, type ProviderId, readProviderId, renderProviderId } from '../../cloud/provider-id.ts';

const read = test.macro((t, value: unknown, want: ProviderId, instanceId?: string) => {
  t.deepEqual(readProviderId(value), want);
  t.is(instanceIdOf(value), instanceId);
});
const instance = (zone: string): ProviderId => ({
  kind: 'instance',
  instanceId: 'ins-3jk2x9ab',
  zone,
  isNative: false,
});
const NATIVE: ProviderId = { kind: 'instance', instanceId: 'ins-3jk2x9ab', isNative: true };
const ID = 'ins-3jk2x9ab';

test('readProviderId: of TKE, with the number of the zone', read, `qcloud:///100003/${ID}`, instance('100003'), ID);
test('readProviderId: of TKE, with its name', read, `qcloud:///ap-gz-3/${ID}`, instance('ap-gz-3'), ID);
test('readProviderId: of the open controller', read, `tencentcloud:///ap-gz-3/${ID}`, instance('ap-gz-3'), ID);
test('readProviderId: without a zone', read, `qcloud:////${ID}`, { ...NATIVE, isNative: false }, ID);
test('readProviderId: of a native node on CVM', read, `tencentcloud://${ID}`, NATIVE, ID);
test('readProviderId: of a native node', read, 'tencentcloud://kn-3jk2x9ab', { kind: 'other', id: 'kn-3jk2x9ab' });
test('readProviderId: of a super node', read, 'qcloud:///1/eklet-3jk2x9ab', { kind: 'other', id: 'eklet-3jk2x9ab' });
test('readProviderId: none', read, '', { kind: 'none' });
test('readProviderId: absent', read, undefined, { kind: 'none' });
test('readProviderId: of another provider', read, 'aws:///us-east-1a/i-0123456789', { kind: 'foreign' });
test('readProviderId: a number', read, 7, { kind: 'malformed' });
for (const wrong of [
  'qcloud:///100003/',
  'qcloud:///100003/ins-',
  'qcloud:///100003/ins-3jk2\nx9ab',
  'tencentcloud:///ap-gz-3/lb-3jk2x9ab',
  'qcloud:///100003/INS-3jk2x9ab',
  'qcloud://',
  'tencentcloud:ins-3jk2x9ab',
  'qcloud:///1/2/ins-3jk2x9ab',
  'qcloud:///100003/ins-3jk2x9ab ',
  `qcloud:///100003/ins-${'a'.repeat(33)}`,
])
  test(`readProviderId: malformed: ${JSON.stringify(wrong)}`, read, wrong, { kind: 'malformed' });

test('instanceIdOf: reads a bare id', (t) => t.is(instanceIdOf(ID), ID));

test('renderProviderId: reads back', (t) => {
  for (const form of ['qcloud', 'tencentcloud'] as const)
    t.deepEqual(readProviderId(renderProviderId(form, 'z', ID)), instance('z'));
});
