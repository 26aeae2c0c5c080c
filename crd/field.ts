import type { Decoder, Field } from '../runtime/decode.ts';
import type { OpenApiSchema } from './schema.ts';

/**
 * The only writer of a field. All others leave it unchanged. `agent`: the node's agent; `ipamd`: the controller;
 * `scheduler`: the scheduler extender in static mode; `people`: users and their tools; `policy`: ipamd, once, from
 * flags, ConfigMaps and the instance type, as long as no user has set the field; `ccm`: the cloud controller manager.
 */
export type FieldOwner = 'agent' | 'ipamd' | 'scheduler' | 'people' | 'policy' | 'ccm';

/** One kind of value in a resource: its decoder and its schema for the API server, defined together. */
export type Value<T> = {
  readonly decoder: Decoder<T>;
  readonly schema: OpenApiSchema;
  /** The fields of an object, or of each item of a list of objects. */
  readonly fields?: FieldTable;
};

/** A field of a resource: its decoder and schema, its owner and its description. */
export type ResourceField<T> = Field<T> & {
  readonly value: Value<T>;
  /** Absent: the owner of the enclosing field. */
  readonly owner?: FieldOwner;
  readonly about: string;
};

/** The fields of one object, by name. */
export type FieldTable = Readonly<Record<string, ResourceField<unknown>>>;

/** Returns a maker of fields that have one owner. */
export function ownedBy(owner: FieldOwner): FieldMaker {
  return fieldMaker({ owner });
}

/** Makes fields inside an object; they have the owner of the enclosing field. */
export const part: FieldMaker = fieldMaker({});

/** Makes a required or an optional field of a kind of value, with a sentence that describes it. */
type FieldMaker = {
  readonly required: <T>(value: Value<T>, about: string) => ResourceField<T> & { readonly optional: false };
  readonly optional: <T>(value: Value<T>, about: string) => ResourceField<T> & { readonly optional: true };
};

function fieldMaker(owner: { readonly owner?: FieldOwner }): FieldMaker {
  return {
    required: (value, about) => ({ decoder: value.decoder, optional: false, value, about, ...owner }),
    optional: (value, about) => ({ decoder: value.decoder, optional: true, value, about, ...owner }),
  };
}
