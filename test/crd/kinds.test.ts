import { readFileSync } from 'node:fs';
import test from 'ava';
import { parse } from 'yaml';
import { customResourceDefinition } from '../../crd/custom-resource-definition.ts';
import type { FieldOwner, FieldTable } from '../../crd/field.ts';
import { RESOURCE_KINDS } from '../../crd/kinds.ts';
import type { OpenApiSchema } from '../../crd/schema.ts';

function fieldsWithoutOwner(fields: FieldTable, path: string, around: FieldOwner | undefined): readonly string[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const at = `${path}.${name}`;
    const owner = field.owner ?? around;
    const inner = field.value.fields;
    if (inner !== undefined) return fieldsWithoutOwner(inner, at, owner);
    return owner === undefined ? [at] : [];
  });
}

/** What makes a schema not structural, or a list map whose keys may be missing: the API server refuses the definition. */
function schemaFaults(schema: OpenApiSchema, path: string): readonly string[] {
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const required = schema.items?.required ?? [];
  return [
    ...(schema.type === undefined ? [`${path}: no type`] : []),
    ...keys.filter((key) => !required.includes(key)).map((key) => `${path}: key ${key} may be absent`),
    ...(schema.type === 'array' && schema.maxItems === undefined ? [`${path}: no bound`] : []),
    ...(schema.properties !== undefined && schema.additionalProperties !== undefined ? [`${path}: both`] : []),
    ...(schema.items === undefined ? [] : schemaFaults(schema.items, `${path}[]`)),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, one]) => schemaFaults(one, `${path}.${name}`)),
  ];
}

/** The schema that a column's path leads to: `.a.b`, `[0]` and filters of lists. */
function schemaAt(schema: OpenApiSchema, path: string): OpenApiSchema | undefined {
  const steps = path.match(/\.[A-Za-z0-9]+|\[[^\]]*\]/g) ?? [];
  return steps.join('') === path ? steps.reduce<OpenApiSchema | undefined>(stepInto, schema) : undefined;
}

function stepInto(schema: OpenApiSchema | undefined, step: string): OpenApiSchema | undefined {
  return step.startsWith('[') ? schema?.items : schema?.properties?.[step.slice(1)];
}

for (const kind of RESOURCE_KINDS) {
  test(`${kind.kind}: has columns of one value each, which its schema has, under names that tell them apart`, (t) => {
    const schema = customResourceDefinition(kind).spec.versions[0].schema.openAPIV3Schema;
    const own = kind.columns.filter(({ jsonPath }) => !jsonPath.startsWith('.metadata'));
    const wrong = own.filter(({ jsonPath, type }) => schemaAt(schema, jsonPath)?.type !== type);
    t.deepEqual(
      wrong.map(({ name }) => name),
      [],
    );
    // kubectl's own for every object.
    const names = ['Namespace', 'Name', ...kind.columns.map(({ name }) => name)];
    t.is(new Set(names).size, names.length);
    t.is(names.at(-1), 'Age');
  });

  test(`${kind.kind}: has an owner for every field`, (t) => {
    t.deepEqual(fieldsWithoutOwner(kind.fields, kind.kind, undefined), []);
  });

  test(`${kind.kind}: has a structural schema with bounded lists`, (t) => {
    const schema = customResourceDefinition(kind).spec.versions[0].schema.openAPIV3Schema;
    t.deepEqual(schemaFaults(schema, kind.kind), []);
  });

  test(`${kind.kind}: is in conf/crd/ as the tables say`, (t) => {
    const text = readFileSync(new URL(`../../conf/crd/${kind.plural}.yaml`, import.meta.url), 'utf8');
    t.deepEqual(parse(text), JSON.parse(JSON.stringify(customResourceDefinition(kind))));
  });

  test(`${kind.kind}: has no status subresource, which no ClusterRole grants`, (t) => {
    t.false('subresources' in customResourceDefinition(kind).spec.versions[0]);
  });
}

test('RESOURCE_KINDS: are the seven of the group, with the short names that people type', (t) => {
  t.deepEqual(
    RESOURCE_KINDS.map((kind) => [kind.plural, ...kind.shortNames].join(' ')),
    [
      'nodeeniconfigs nec',
      'vpcipclaims vipc',
      'vpcips vip',
      'vpcenis veni',
      'eipclaims eipc',
      'staticipconfigs sic',
      'underlayips uip',
    ],
  );
});
