import { readFileSync } from 'node:fs';
import test from 'ava';
import fc from 'fast-check';
import { parse } from 'yaml';
import { customResourceDefinition } from '../../../crd/custom-resource-definition.ts';
import { RESOURCE_KINDS } from '../../../crd/kinds.ts';
import { Faults } from '../../../runtime/decode.ts';
import { isEqual } from '../../../sim/kube-api/object.ts';
import { prune, withDefaults } from '../../../sim/kube-api/schema/shape.ts';
import { validate } from '../../../sim/kube-api/schema/validate.ts';
import { assertLaw } from '../../support/law.ts';

const EXAMPLE = parse(readFileSync(new URL('../../../conf/node.example.yaml', import.meta.url), 'utf8'));

test('validate: finds nothing wrong with the example', (t) => {
  const kind = RESOURCE_KINDS.find((one) => one.kind === 'NodeENIConfig');
  const schema = kind && customResourceDefinition(kind).spec.versions[0].schema.openAPIV3Schema;
  t.deepEqual(validate(EXAMPLE, schema ?? {}, ''), []);
});

// A value that our decoder takes and the API server refuses could be read from a file and never written.
for (const kind of RESOURCE_KINDS) {
  test(`${kind.kind}: whatever the decoder takes, the schema takes`, async (t) => {
    for (const [name, field] of Object.entries(kind.fields)) {
      for (const [inner, leaf] of Object.entries(field.value.fields ?? {})) {
        await assertLaw(
          t,
          () =>
            fc.property(likely, (value) => {
              const faults = new Faults();
              const decoded = leaf.decoder(value, inner, faults);
              if (decoded === undefined || faults.list.length > 0) return true;
              return validate(value, leaf.value.schema, `${name}.${inner}`).length === 0;
            }),
          { numRuns: 300 },
        );
      }
    }
  });
}

/** Values that are right more often than chance would have it. */
const likely = fc.oneof(
  fc.constantFrom(
    'Pod',
    'ENI',
    'Assigned',
    'Never',
    'route-eni',
    'True',
    'eni-1',
    '10.0.0.1',
    'fd00::1',
    '1h30m',
    'n1',
  ),
  fc.constantFrom('20:90:6f:00:00:01', '10.0.0.0/24', 'fd00::/64', '2026-01-01T00:00:00Z', '::ffff:10.0.0.1', ''),
  fc.ipV4(),
  fc.ipV6(),
  fc.integer(),
  fc.maxSafeNat(),
  fc.boolean(),
  fc.string(),
  fc.jsonValue(),
  fc.array(fc.ipV4()),
  fc.dictionary(fc.string(), fc.string()),
);

const SHAPE = {
  type: 'object',
  properties: {
    a: { type: 'integer', default: 3 },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    map: {
      type: 'object',
      additionalProperties: { type: 'object', properties: { x: { type: 'string', default: 'y' } } },
    },
    list: { type: 'array', items: { type: 'object', properties: { z: { type: 'string' } } } },
  },
};

test('prune: takes away what the schema does not have, and says what', (t) => {
  const { value, unknown } = prune(
    { a: 1, b: 2, free: { q: 1 }, map: { k: { x: '1', w: 2 } }, list: [{ z: 'a', v: 1 }] },
    SHAPE,
  );
  t.deepEqual(value, { a: 1, free: { q: 1 }, map: { k: { x: '1' } }, list: [{ z: 'a' }] });
  t.deepEqual(unknown, ['b', 'map.k.w', 'list[0].v']);
});

test('prune: done twice is done once', async (t) => {
  await assertLaw(t, () =>
    fc.property(fc.jsonValue(), (value) => {
      const once = prune(value, SHAPE).value;
      return isEqual(prune(once, SHAPE).value, once) && prune(once, SHAPE).unknown.length === 0;
    }),
  );
});

test('withDefaults: fills in what is absent, also within maps', (t) => {
  t.deepEqual(withDefaults({ map: { k: {} } }, SHAPE), { a: 3, map: { k: { x: 'y' } } });
  t.deepEqual(withDefaults({ a: null }, SHAPE), { a: 3 });
  t.deepEqual(withDefaults({ a: 1 }, SHAPE), { a: 1 });
});
