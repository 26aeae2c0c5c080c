import type { CelRule, OpenApiSchema } from '../crd/schema.ts';

/** A definition as far as objects that were written under it depend on it. */
export type ComparedDefinition = {
  readonly spec: {
    readonly group: string;
    readonly scope: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly schema: { readonly openAPIV3Schema: OpenApiSchema };
    }[];
  };
};

/**
 * Lists in what a definition accepts less than an older one of the same kind: objects of that release might not pass, or
 * would lose fields. Errs on the side of finding: another pattern or rule counts, though it may be looser.
 */
export function findTightenings(before: ComparedDefinition, after: ComparedDefinition): readonly string[] {
  const fixed = (['group', 'scope'] as const).filter((key) => before.spec[key] !== after.spec[key]);
  const named = (['kind', 'plural'] as const).filter((key) => before.spec.names[key] !== after.spec.names[key]);
  return [
    ...[...fixed, ...named].map((key) => `spec: another ${key}`),
    ...before.spec.versions.flatMap((version) => {
      const same = after.spec.versions.find(({ name }) => name === version.name);
      if (same === undefined || (version.served && !same.served)) return [`${version.name}: is not served any more`];
      return compare(version.schema.openAPIV3Schema, same.schema.openAPIV3Schema, version.name);
    }),
  ];
}

/** Bounds, and which way they grow looser. */
const UPPER = ['maximum', 'maxLength', 'maxItems', 'maxProperties'] as const;
const LOWER = ['minimum', 'minLength'] as const;
/** What may be dropped, but not brought in or changed. */
const RESTRICTIONS = ['format', 'pattern', 'anyOf'] as const;
/** What decides how lists merge and which are equal; may not change at all. */
const SHAPES = ['type', 'x-kubernetes-list-type', 'x-kubernetes-list-map-keys'] as const;

function compare(before: OpenApiSchema, after: OpenApiSchema, path: string): readonly string[] {
  return [
    ...SHAPES.filter((key) => text(before[key]) !== text(after[key])).map((key) => `${path}: another ${key}`),
    ...RESTRICTIONS.filter((key) => after[key] !== undefined && text(before[key]) !== text(after[key])).map(
      (key) => `${path}: another ${key}`,
    ),
    ...UPPER.filter((key) => isLowered(before[key], after[key])).map((key) => `${path}: a lower ${key}`),
    ...LOWER.filter((key) => isRaised(before[key], after[key])).map((key) => `${path}: a higher ${key}`),
    ...lostWords(before.enum, after.enum).map((word) => `${path}: no ${word} any more`),
    ...newOnes(before.required, after.required).map((name) => `${path}.${name}: is required now`),
    ...newRules(before, after).map((rule) => `${path}: a new rule: ${rule.message}`),
    ...comparePart(before.items, after.items, `${path}[]`),
    ...comparePart(before.additionalProperties, after.additionalProperties, `${path}.*`),
    ...Object.entries(before.properties ?? {}).flatMap(([name, field]) =>
      comparePart(field, after.properties?.[name], `${path}.${name}`),
    ),
  ];
}

/** A part that is gone is pruned from every object at its next write. */
function comparePart(before: OpenApiSchema | undefined, after: OpenApiSchema | undefined, path: string) {
  if (before === undefined) return [];
  return after === undefined ? [`${path}: is gone`] : compare(before, after, path);
}

function isLowered(before: number | undefined, after: number | undefined): boolean {
  return after !== undefined && (before === undefined || after < before);
}

function isRaised(before: number | undefined, after: number | undefined): boolean {
  return after !== undefined && (before === undefined || after > before);
}

function lostWords(before: readonly string[] | undefined, after: readonly string[] | undefined): readonly string[] {
  if (after === undefined) return [];
  return before === undefined ? ['other word'] : before.filter((word) => !after.includes(word));
}

function newOnes(before: readonly string[] = [], after: readonly string[] = []): readonly string[] {
  return after.filter((name) => !before.includes(name));
}

function newRules(before: OpenApiSchema, after: OpenApiSchema): readonly CelRule[] {
  const known = new Set((before['x-kubernetes-validations'] ?? []).map(({ rule }) => rule));
  return (after['x-kubernetes-validations'] ?? []).filter(({ rule }) => !known.has(rule));
}

function text(value: unknown): string | undefined {
  return JSON.stringify(value);
}
