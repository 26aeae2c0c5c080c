import type { Field } from '../runtime/decode.ts';
import type { Value } from './value.ts';

/**
 * Who writes a field. Everyone else keeps it as it is.
 * `agent` the node's agent; `ipamd` the controller; `scheduler` the scheduler extender in static mode; `people` by hand or
 * by their tools; `policy` ipamd once, from flags, ConfigMaps and the instance type, where people have written nothing.
 */
export type Owner = 'agent' | 'ipamd' | 'scheduler' | 'people' | 'policy';

/** A field of a resource: how it is read and checked, whose it is, and what it is for. */
export type ResourceField<T> = Field<T> & {
  readonly value: Value<T>;
  /** Absent: the owner of the field around it. */
  readonly owner?: Owner;
  readonly about: string;
};

/** The fields of one object, by name. */
export type FieldTable = Readonly<Record<string, ResourceField<unknown>>>;

/** Makes the fields of one owner. */
export function ownedBy(owner: Owner): FieldMaker {
  return fieldMaker({ owner });
}

/** Makes fields inside an object; they have the owner of the field around it. */
export const part: FieldMaker = fieldMaker({});

/** Makes a field that must be there, or may be absent, of a kind of value, with a sentence on what it is for. */
export type FieldMaker = {
  readonly required: <T>(value: Value<T>, about: string) => ResourceField<T> & { readonly optional: false };
  readonly optional: <T>(value: Value<T>, about: string) => ResourceField<T> & { readonly optional: true };
};

function fieldMaker(owner: { readonly owner?: Owner }): FieldMaker {
  return {
    required: (value, about) => ({ decoder: value.decoder, optional: false, value, about, ...owner }),
    optional: (value, about) => ({ decoder: value.decoder, optional: true, value, about, ...owner }),
  };
}
