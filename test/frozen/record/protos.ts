import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf from 'protobufjs';
import { isObject, type JsonObject } from '../../../sim/support/netns.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
/** The contracts of the agent; its other .proto files belong to Kubernetes. */
const FILES = ['agent.proto', 'ops.proto'];

/** Reads the contracts, wherever they lie. */
export function readContracts(): protobuf.Root {
  const root = new protobuf.Root();
  for (const name of FILES) {
    const [path] = globSync(`*/**/${name}`, { cwd: ROOT, exclude: ['node_modules/**', 'dist/**'] });
    if (path === undefined) throw new Error(`no ${name}`);
    protobuf.parse(readFileSync(join(ROOT, path), 'utf8'), root, { keepCase: true });
  }
  root.resolveAll();
  return root;
}

/** Lists services, messages and enumerations by their full names. */
export function recordProtos(): object {
  const found: Record<string, object> = {};
  for (const one of nestedOf(readContracts())) {
    if (one instanceof protobuf.Type) found[one.fullName.slice(1)] = { fields: fieldsOf(one) };
    if (one instanceof protobuf.Enum) found[one.fullName.slice(1)] = { values: { ...one.values } };
    if (one instanceof protobuf.Service) found[one.fullName.slice(1)] = { methods: methodsOf(one) };
  }
  return found;
}

function nestedOf(namespace: protobuf.NamespaceBase): readonly protobuf.ReflectionObject[] {
  return namespace.nestedArray.flatMap((one) => [one, ...(one instanceof protobuf.Namespace ? nestedOf(one) : [])]);
}

function fieldsOf(type: protobuf.Type): object {
  const fields = type.fieldsArray.map(({ id, name, type: kind, repeated, partOf }) => [
    name,
    { number: id, type: kind, ...(repeated ? { repeated } : {}), ...(partOf ? { oneof: partOf.name } : {}) },
  ]);
  return Object.fromEntries(fields);
}

function methodsOf(service: protobuf.Service): object {
  const methods = service.methodsArray.map(({ name, requestType, responseType, requestStream, responseStream }) => [
    name,
    { request: requestType, reply: responseType, streams: [requestStream === true, responseStream === true] },
  ]);
  return Object.fromEntries(methods);
}

/** Decodes a message by the contracts, with the names that they have; numbers of 64 bits as texts. */
export function decodeByProto(type: protobuf.Type, bytes: Uint8Array): JsonObject {
  const value: unknown = type.toObject(type.decode(bytes), { longs: String, bytes: String });
  if (!isObject(value)) throw new Error(`${type.name}: no message`);
  return value;
}
