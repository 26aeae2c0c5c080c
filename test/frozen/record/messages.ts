import protobuf from 'protobufjs';
import { decodeMessage, encodeMessage, type Field, type InitOf, type MessageTable } from '../../../agent/api/codec.ts';
import { OPS_METHODS } from '../../../agent/api/ops-service.ts';
import { AGENT_METHODS, type MethodTable } from '../../../agent/api/service.ts';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';
import { readContracts } from './protos.ts';

const PACKAGE = 'tke.eni.v1';

/** A message as it is recorded: values by the names of the contract, and the bytes that the product made of them. */
type RecordedMessage = { readonly value: JsonObject; readonly bytes: string };

/** Makes a value of each message with every field set, and encodes it; of fields that exclude each other one after the other. */
export function recordMessages(): Readonly<Record<string, RecordedMessage>> {
  const root = readContracts();
  const rows = [...messageTables(root)].flatMap(([name, table]) => {
    const type = root.lookupType(name);
    const choices = type.oneofsArray.flatMap(({ fieldsArray }) => fieldsArray.map((field) => field.name));
    const variants = choices.length === 0 ? [undefined] : choices;
    return variants.map((choice) => {
      const value = sampleOf(type, choice);
      const bytes = encodeByNumbers(table, type, value);
      return [choice === undefined ? name : `${name} with ${choice}`, { value, bytes }] as const;
    });
  });
  return Object.fromEntries(rows);
}

/** Finds the product's table of each message: by the path of the call, and by the numbers of fields from there. */
export function messageTables(root: protobuf.Root): ReadonlyMap<string, MessageTable> {
  const found = new Map<string, MessageTable>();
  const visit = (type: protobuf.Type, table: MessageTable): void => {
    const name = type.fullName.slice(1);
    if (found.has(name)) return;
    found.set(name, table);
    for (const field of type.fieldsArray) {
      const known = fieldByNumber(table, field.id)?.[1];
      if (known?.type === 'message' && field.resolvedType instanceof protobuf.Type)
        visit(field.resolvedType, known.message);
    }
  };
  for (const { path, request, reply } of [
    ...Object.values(AGENT_METHODS),
    ...Object.values(OPS_METHODS),
  ] as readonly MethodTable[]) {
    const [, service = '', method = ''] = path.split('/');
    const { requestType = '', responseType = '' } = root.lookupService(service).methods[method] ?? {};
    visit(root.lookupType(`${PACKAGE}.${requestType}`), request);
    visit(root.lookupType(`${PACKAGE}.${responseType}`), reply);
  }
  return found;
}

/** Encodes a value of the contract's names by the product's codec: fields meet by number. Returns the bytes as hex. */
export function encodeByNumbers(table: MessageTable, type: protobuf.Type, value: JsonObject): string {
  return Buffer.from(encodeMessage(table, toTable(table, type, value) as InitOf<MessageTable>)).toString('hex');
}

/** Decodes bytes by the product's codec into a value of the contract's names. */
export function decodeByNumbers(table: MessageTable, type: protobuf.Type, bytes: string): JsonObject {
  return fromTable(table, type, decodeMessage(table, Buffer.from(bytes, 'hex')) as JsonObject);
}

function toTable(table: MessageTable, type: protobuf.Type, value: JsonObject): JsonObject {
  const entries = Object.entries(value).map(([name, item]) => {
    const field = type.fields[name];
    const [ours, known] = fieldByNumber(table, field?.id ?? 0) ?? [];
    if (field === undefined || ours === undefined) throw new Error(`${type.name}.${name}: not in the product`);
    const inner = field.resolvedType;
    if (known?.type === 'bytes') return [ours, Buffer.from(String(item))];
    if (known?.type !== 'message' || !(inner instanceof protobuf.Type)) return [ours, item];
    return [ours, eachOf(item, (one) => toTable(known.message, inner, one))];
  });
  return Object.fromEntries(entries);
}

/** Leaves out what has its default: the sample has none of these, and a field of a later release is absent in it. */
function fromTable(table: MessageTable, type: protobuf.Type, value: JsonObject): JsonObject {
  const entries = type.fieldsArray.flatMap((field): [string, unknown][] => {
    const [ours = '', known] = fieldByNumber(table, field.id) ?? [];
    const item = value[ours];
    const inner = field.resolvedType;
    if (item === undefined || item === 0 || item === '' || item === false) return [];
    if (Array.isArray(item) && item.length === 0) return [];
    if (item instanceof Uint8Array) return [[field.name, Buffer.from(item).toString()]];
    if (known?.type !== 'message' || !(inner instanceof protobuf.Type)) return [[field.name, item]];
    return [[field.name, eachOf(item, (one) => fromTable(known.message, inner, one))]];
  });
  return Object.fromEntries(entries);
}

function eachOf(value: unknown, make: (one: JsonObject) => JsonObject): unknown {
  if (Array.isArray(value)) return value.filter(isObject).map(make);
  return isObject(value) ? make(value) : value;
}

function fieldByNumber(table: MessageTable, number: number): readonly [string, Field] | undefined {
  return Object.entries(table).find(([, field]) => field.number === number);
}

/** No two fields of a message are alike, and none has its default. Whole numbers of 64 bits are beyond 32. */
function sampleOf(type: protobuf.Type, choice?: string): JsonObject {
  const fields = type.fieldsArray.filter(({ partOf, name }) => !partOf || choice === undefined || name === choice);
  return Object.fromEntries(
    fields.map((field) => {
      const one = (at: number): unknown => sampleField(field, at);
      return [field.name, field.repeated ? [one(1), one(2)] : one(0)];
    }),
  );
}

function sampleField(field: protobuf.Field, at: number): unknown {
  const { id, name, type, resolvedType } = field;
  if (resolvedType instanceof protobuf.Enum) return Math.max(...Object.values(resolvedType.values)) - at;
  if (resolvedType instanceof protobuf.Type) return sampleOf(resolvedType, resolvedType.oneofsArray[0]?.oneof[0]);
  if (type === 'string' || type === 'bytes') return at === 0 ? `${name} ${id}` : `${name} ${id}, ${at}`;
  if (type === 'bool') return true;
  if (type === 'int32') return -id - at;
  return type === 'uint64' ? 2 ** 40 + id + at : id * 1_000 + at;
}
