import test from 'ava';
import { findLawFiles, findUnseeded, importsLaws } from '../../tools/check-seeds.ts';

const finds = test.macro((t, text: string, wanted: readonly RegExp[], path: string = 'test/kube/a.test.ts') => {
  const found = findUnseeded(path, text);
  t.is(found.length, wanted.length, found.join('\n'));
  for (const [index, pattern] of wanted.entries()) t.regex(found[index] ?? '', pattern);
});

const LAW = "import fc from 'fast-check';\nimport { assertLaw } from '../support/law.ts';\n";

test('findUnseeded: accepts a law', finds, `${LAW}await assertLaw(t, () => fc.property(fc.nat(), holds));`, []);
test('findUnseeded: accepts names that must be unique', finds, 'const name = randomBytes(4).toString("hex");', []);
test('findUnseeded: accepts what a comment says', finds, '// Math.random\n/** fc.assert */\n', []);
test('findUnseeded: finds a property that fast-check seeds', finds, 'x();\nfc.assert(p);', [
  /^2: fc\.assert; .*assertLaw/,
]);
test('findUnseeded: finds it over two spaces', finds, 'fc .check(p); fc.sample(a)', [/^1: fc \.check/]);
test('findUnseeded: finds fast-check under other names', finds, "import { assert } from 'fast-check';", [/fast-check/]);
test('findUnseeded: finds a stream without a seed', finds, 'const random = Math.random;', [
  /Math\.random; .*seededRandom/,
]);
test('findUnseeded: finds a number without a seed', finds, 'const seed = randomInt(9);', [/randomInt/]);
test('findUnseeded: finds a seed of a variable of its own', finds, "process.env['MY_SEED']", [/SEED of sim\/support/]);
test(
  'findUnseeded: finds a law where nobody would run it longer',
  finds,
  LAW,
  [/only files of tests/],
  'test/kube/a.ts',
);
test('findUnseeded: lets the place itself draw', finds, 'randomInt(9); fc.check(p);', [], 'sim/support/seed.ts');

test('importsLaws: knows laws and lists of seeds by their imports', (t) => {
  t.true(importsLaws(LAW));
  t.true(importsLaws("import { assertLaw } from './law.ts';"));
  t.true(importsLaws("import { SEED, seedList } from '../../support/seed.ts';"));
  t.false(importsLaws("import { SEED } from '../../support/seed.ts';"));
  t.false(importsLaws("import { law } from '../by-law.ts';"));
});

test('findLawFiles: finds what uses a law, and nothing that needs a VPC or is of the simulation', (t) => {
  const files = findLawFiles();
  t.true(files.includes('test/scheduler/laws.test.ts'));
  t.true(files.includes('test/ipamd/guests/static/claim-laws.test.ts'));
  t.false(files.includes('test/kube/objects.test.ts'));
  t.deepEqual(
    files.filter((path) => /^test\/(e2e|cluster|simulation)\//.test(path)),
    [],
  );
});
