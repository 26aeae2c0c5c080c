import { ApiError } from './api-error.ts';
import type { Params } from './params.ts';

/** Values of an object by filter name; the API matches when any of a filter's values is among them. */
type FilterFields<T> = Readonly<Record<string, (object: T) => readonly (string | undefined)[]>>;

/** What one describing API documents. */
export type DescribeRules<T> = {
  readonly idField: string;
  readonly mostIds: number;
  readonly mostFilters: number;
  readonly mostValues: number;
  readonly fields: FilterFields<T>;
  /** Tags of an object, for `tag-key` and `tag:KEY`. */
  readonly tagsOf?: (object: T) => Readonly<Record<string, string>>;
  /** Code of an unknown filter name. */
  readonly invalidFilter: string;
  /** Offset and Limit are texts. */
  readonly hasTextPaging?: boolean;
};

/** Selects and pages as documented. @throws ApiError for unknown filters, ids with filters, too many of anything */
export function select<T>(
  objects: ReadonlyMap<string, T>,
  params: Params,
  rules: DescribeRules<T>,
): { readonly page: readonly T[]; readonly total: number } {
  if (params.has(rules.idField) && params.has('Filters')) {
    throw new ApiError('InvalidParameter.Coexist', `${rules.idField} and Filters cannot be used together.`);
  }
  const offset = paging(params, 'Offset', 0, Number.MAX_SAFE_INTEGER, rules.hasTextPaging ?? false);
  const limit = paging(params, 'Limit', 20, 100, rules.hasTextPaging ?? false);
  const named = params.has(rules.idField)
    ? params.texts(rules.idField, rules.mostIds).map((id) => objects.get(id))
    : [...objects.values()].filter(matcher(params, rules));
  const found = named.filter((object) => object !== undefined);
  return { page: found.slice(offset, offset + limit), total: found.length };
}

function matcher<T>(params: Params, rules: DescribeRules<T>): (object: T) => boolean {
  const filters = params.objects('Filters');
  if (filters.length > rules.mostFilters) {
    throw new ApiError('InvalidParameterValue.LimitExceeded', `more than ${rules.mostFilters} filters.`);
  }
  const tests = filters.map((filter) => testOf(filter, rules));
  return (object) => tests.every((test) => test(object));
}

function testOf<T>(filter: Readonly<Record<string, unknown>>, rules: DescribeRules<T>): (object: T) => boolean {
  const name = filter['Name'];
  const values = filter['Values'];
  if (typeof name !== 'string') throw new ApiError('InvalidParameter.FilterNotDict', 'a filter needs a Name.');
  if (!Array.isArray(values) || values.length === 0) {
    throw new ApiError('InvalidParameter.FilterValuesNotList', `the filter ${name} needs a list of Values.`);
  }
  if (values.length > rules.mostValues) {
    throw new ApiError('InvalidParameterValue.LimitExceeded', `the filter ${name} has too many values.`);
  }
  const wanted = new Set(values.map(String));
  const tags = rules.tagsOf;
  if (tags !== undefined && name === 'tag-key') {
    return (object) => Object.keys(tags(object)).some((key) => wanted.has(key));
  }
  if (tags !== undefined && name.startsWith('tag:')) {
    const key = name.slice('tag:'.length);
    return (object) => wanted.has(tags(object)[key] ?? '\0');
  }
  const read = Object.hasOwn(rules.fields, name) ? rules.fields[name] : undefined;
  if (read === undefined) throw new ApiError(rules.invalidFilter, `The filter ${name} is not supported.`);
  return (object) => read(object).some((value) => value !== undefined && wanted.has(value));
}

function paging(params: Params, name: string, fallback: number, max: number, isText: boolean): number {
  const value = params.raw[name] ?? (isText ? String(fallback) : fallback);
  if (typeof value !== (isText ? 'string' : 'number')) {
    throw new ApiError('InvalidParameter', `The parameter ${name} must be ${isText ? 'a string' : 'an integer'}.`);
  }
  const number = Number(value);
  if (!Number.isInteger(number) || number < 0 || number > max) {
    throw new ApiError('InvalidParameterValue.Range', `${name} must be from 0 to ${max}.`);
  }
  return number;
}
