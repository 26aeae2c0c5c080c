import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';
import { customResourceDefinition } from '../../crd/custom-resource-definition.ts';
import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import type { OpenApiSchema } from '../../crd/schema.ts';
import { type ComparedDefinition, findTightenings } from '../../tools/find-tightenings.ts';

/** conf/crd/ of the last release. With a release, `cp conf/crd/*.yaml test/crd/baseline/`. */
const BASELINE = new URL('baseline/', import.meta.url);

for (const file of readdirSync(BASELINE)) {
  test(`${file}: accepts whatever the last release accepted`, (t) => {
    const before: ComparedDefinition = parse(readFileSync(new URL(file, BASELINE), 'utf8'));
    const kind = RESOURCE_KINDS.find(({ plural }) => plural === before.spec.names.plural);
    if (kind === undefined) return t.fail('the kind is gone');
    return t.deepEqual(findTightenings(before, customResourceDefinition(kind)), []);
  });
}

test('RESOURCE_KINDS: are all in the baseline, or are new', (t) => {
  const recorded = readdirSync(BASELINE).map((file) => file.replace('.yaml', ''));
  const now = RESOURCE_KINDS.map(({ plural }) => plural);
  t.deepEqual(
    recorded.filter((plural) => !now.includes(plural)),
    [],
  );
});

function definition(schema: OpenApiSchema): ComparedDefinition {
  const versions = [{ name: 'v1', served: true, schema: { openAPIV3Schema: schema } }];
  return { spec: { group: 'g', scope: 'Cluster', names: { kind: 'K', plural: 'ks' }, versions } };
}

const compared = test.macro((t, before: OpenApiSchema, after: OpenApiSchema, want: readonly string[]) =>
  t.deepEqual(findTightenings(definition(before), definition(after)), want),
);
const RULE = { rule: 'self.a < 3', message: 'a is small' };
const ONE: OpenApiSchema = { type: 'object', properties: { a: { type: 'integer', minimum: 1, maximum: 9 } } };

test('findTightenings: lets an optional field come', compared, { type: 'object' }, ONE, []);
test('findTightenings: finds a field that went', compared, ONE, { type: 'object' }, ['v1.a: is gone']);
test(
  'findTightenings: lets bounds grow and go',
  compared,
  { type: 'array', maxItems: 3, items: { type: 'integer', minimum: 1, maximum: 9 } },
  { type: 'array', maxItems: 4, items: { type: 'integer', minimum: 0 } },
  [],
);
test(
  'findTightenings: finds bounds that came or shrank',
  compared,
  { type: 'array', items: { type: 'integer', maximum: 9 } },
  { type: 'array', maxItems: 4, items: { type: 'integer', minimum: 0, maximum: 8 } },
  ['v1: a lower maxItems', 'v1[]: a lower maximum', 'v1[]: a higher minimum'],
);
test(
  'findTightenings: finds a word that went',
  compared,
  { type: 'string', enum: ['A', 'B'] },
  { type: 'string', enum: ['B', 'C'] },
  ['v1: no A any more'],
);
test(
  'findTightenings: finds words where any text was good',
  compared,
  { type: 'string' },
  { type: 'string', enum: [] },
  ['v1: no other word any more'],
);
test('findTightenings: finds what is required now', compared, ONE, { ...ONE, required: ['a'] }, [
  'v1.a: is required now',
]);
test('findTightenings: lets a requirement go', compared, { ...ONE, required: ['a'] }, ONE, []);
test('findTightenings: finds a new rule', compared, ONE, { ...ONE, 'x-kubernetes-validations': [RULE] }, [
  'v1: a new rule: a is small',
]);
test('findTightenings: lets a rule go', compared, { ...ONE, 'x-kubernetes-validations': [RULE] }, ONE, []);
test('findTightenings: finds another type', compared, { type: 'string' }, { type: 'integer' }, ['v1: another type']);
test(
  'findTightenings: finds another pattern',
  compared,
  { type: 'string', pattern: 'a' },
  { type: 'string', pattern: 'b' },
  ['v1: another pattern'],
);
test('findTightenings: finds a version that is not served any more', (t) => {
  const without = { spec: { ...definition(ONE).spec, versions: [] } };
  t.deepEqual(findTightenings(definition(ONE), without), ['v1: is not served any more']);
});
