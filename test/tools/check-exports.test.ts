import test from 'ava';
import { checkExports } from '../../tools/check-exports.ts';

const source = (path: string, text: string) => ({ path, text });
const USED = 'export const limit = 1;\nexport type Limits = { readonly a: number };\nexport async function read() {}\n';

const finds = test.macro((t, importer: string, wanted: readonly string[]) => {
  t.deepEqual(checkExports([source('a/used.ts', USED), source('b/importer.ts', importer)], []), wanted);
});

const said = (name: string): string => `a/used.ts: ${name} is exported, and no other file names it`;

test(
  'checkExports: accepts what others import, types and renamed names too',
  finds,
  "import { limit as most, type Limits, read } from '../a/used.ts';",
  [],
);
test(
  'checkExports: accepts a re-export and lists over several lines',
  finds,
  "export { limit } from '../a/used.ts';\nimport {\n  type Limits,\n  read,\n} from '../a/used.ts';",
  [],
);
test('checkExports: accepts all of a file that is loaded when needed', finds, "await import('../a/used.ts');", []);
test('checkExports: accepts all of a namespace', finds, "import * as used from '../a/used.ts';", []);
test('checkExports: finds what no other file names', finds, "import { limit } from '../a/used.ts';", [
  said('Limits'),
  said('read'),
]);
test('checkExports: finds a name that is imported from elsewhere only', finds, "import { read } from './used.ts';", [
  said('limit'),
  said('Limits'),
  said('read'),
]);
test('checkExports: leaves catalogues complete', (t) => {
  t.deepEqual(checkExports([source('a/used.ts', USED)], ['a/*.ts']), []);
});
