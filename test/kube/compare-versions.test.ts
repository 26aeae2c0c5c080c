import test from 'ava';
import { compareRevisions, compareVersions } from '../../kube/compare-versions.ts';

const compares = test.macro((t, one: string, other: string, order: number | undefined) => {
  t.is(compareRevisions(one, other), order);
  t.is(compareRevisions(other, one), order === undefined || order === 0 ? order : -order);
});

test('compareRevisions: by value', compares, '9', '10', -1);
test('compareRevisions: of one length', compares, '19', '20', -1);
test('compareRevisions: the same', compares, '7', '7', 0);
test('compareRevisions: more digits than a number has', compares, '9'.repeat(40), `1${'0'.repeat(40)}`, -1);
test('compareRevisions: the same text that is no number', compares, 'a', 'a', 0);
test('compareRevisions: what is no number has no order', compares, 'a', '1', undefined);
test('compareRevisions: nor has nothing', compares, '', '1', undefined);

test('compareVersions: two objects of a name have no order', (t) => {
  t.is(compareVersions({ uid: 'a', resourceVersion: '1' }, { uid: 'b', resourceVersion: '2' }), undefined);
  t.is(compareVersions({ uid: 'a', resourceVersion: '1' }, { uid: 'a', resourceVersion: '2' }), -1);
});
