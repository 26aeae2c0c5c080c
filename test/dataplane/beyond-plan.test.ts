import test from 'ava';
import { withoutCommonUnknown } from '../../dataplane/beyond-plan.ts';

const attributes = (...types: readonly number[]) => ({
  unknown: types.map((type) => ({ type, payload: new Uint8Array(4) })),
});
const typesOf = (lists: readonly (readonly number[])[]) =>
  withoutCommonUnknown(lists.map((types) => attributes(...types))).map(({ unknown }) =>
    unknown.map(({ type }) => type),
  );

test('withoutCommonUnknown: what a newer kernel says of each object is no difference, what one object has is', (t) => {
  t.deepEqual(typesOf([[90, 91], [90], [92, 90]]), [[91], [], [92]]);
  t.deepEqual(typesOf([[], [91]]), [[], [91]]);
  t.deepEqual(typesOf([[91]]), [[91]]);
  t.deepEqual(typesOf([]), []);
});
