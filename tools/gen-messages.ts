import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import protobuf from 'protobufjs';
import { messageOf } from '../runtime/error-text.ts';

/** The files of message tables that are made from contracts: path and how to render it. */
export const MESSAGE_FILES: Readonly<Record<string, () => string>> = {
  'agent/api/messages.ts': () => renderFile('agent/api/agent.proto', './codec.ts'),
  'agent/api/ops-messages.ts': () => renderFile('agent/api/ops.proto', './codec.ts'),
  'agent/cri/cri-messages.ts': () => renderFile('agent/cri/cri.proto', '../api/codec.ts'),
  'agent/device-plugin/kubelet-messages.ts': () => renderFile('agent/device-plugin/kubelet.proto', '../api/codec.ts'),
};

function renderFile(path: string, codec: string): string {
  const header = `// Made from ${basename(path)} by tools/gen-messages.ts; run: make gen\n`;
  return `${header}import type { InitOf, MessageOf, MessageTable } from '${codec}';\n\n${renderMessages(path, readFileSync(path, 'utf8'))}`;
}

/**
 * Renders the tables and types of the messages and enumerations of a proto3 file, in its order, each after those that it holds.
 *
 * @param path Names the file in errors.
 * @throws Error when the file holds what `agent/api/codec.ts` cannot read, or a message without a comment.
 */
export function renderMessages(path: string, text: string): string {
  const fail = (what: string): never => {
    throw new Error(`${path}: ${what}`);
  };
  return inOrder(readDeclared(text, fail), fail)
    .map((one) => (one instanceof protobuf.Enum ? renderEnum(one, fail) : renderMessage(one, fail)))
    .join('\n');
}

type Fail = (what: string) => never;

function readDeclared(text: string, fail: Fail): readonly protobuf.ReflectionObject[] {
  const root = new protobuf.Root();
  try {
    const { package: packageName = '' } = protobuf.parse(text, root, { alternateCommentMode: true });
    root.resolveAll();
    const declared = root.lookup(packageName);
    return declared instanceof protobuf.Namespace ? declared.nestedArray : [];
  } catch (error) {
    return fail(messageOf(error));
  }
}

/** Puts messages after those that they hold, and leaves the order of the file otherwise. */
function inOrder(
  declared: readonly protobuf.ReflectionObject[],
  fail: Fail,
): readonly (protobuf.Type | protobuf.Enum)[] {
  const ordered = new Set<protobuf.Type | protobuf.Enum>();
  const visit = (one: protobuf.ReflectionObject, around: readonly protobuf.ReflectionObject[]): void => {
    if (around.includes(one)) fail(`${one.name} holds itself`);
    if (one instanceof protobuf.Enum) ordered.add(one);
    if (!(one instanceof protobuf.Type)) return;
    if (one.nestedArray.length > 0) fail(`${one.name} declares ${one.nestedArray[0]?.name} inside itself`);
    for (const { resolvedType } of one.fieldsArray) if (resolvedType !== null) visit(resolvedType, [...around, one]);
    ordered.add(one);
  };
  for (const one of declared) visit(one, []);
  return [...ordered];
}

function renderEnum(one: protobuf.Enum, fail: Fail): string {
  const name = constantName(one.name);
  return [
    docstring(`${commentOf(one, fail)}\nThe numbers of \`enum ${one.name}\`.`),
    `export const ${name} = {`,
    ...Object.entries(one.values).map(([value, number]) => `  ${value}: ${number},`),
    '} as const;',
    docstring(
      `One of ${name}. A decoded message may hold a number of a later release; therefore its field is a plain number.`,
    ),
    `export type ${one.name} = (typeof ${name})[keyof typeof ${name}];`,
    '',
  ].join('\n');
}

function renderMessage(type: protobuf.Type, fail: Fail): string {
  const name = constantName(type.name);
  const fields = type.fieldsArray.map((field) =>
    renderField(field, (what) => fail(`${type.name}.${field.name} ${what}`)),
  );
  return [
    docstring(commentOf(type, fail)),
    `export const ${name} = {${fields.length === 0 ? '}' : `\n${fields.join('\n')}\n}`} as const satisfies MessageTable;`,
    docstring(`${name}, decoded.`),
    `export type ${type.name} = MessageOf<typeof ${name}>;`,
    docstring(`${name} to encode: missing fields get their defaults.`),
    `export type ${type.name}Init = InitOf<typeof ${name}>;`,
    '',
  ].join('\n');
}

const SCALARS = ['string', 'bytes', 'bool', 'uint32', 'int32', 'uint64'];
/** A repeated field of these types is read packed, or one item a tag. */
const REPEATABLE = ['string', 'uint32', 'uint64', 'enum', 'message'];

function renderField(field: protobuf.Field, fail: Fail): string {
  const { resolvedType, partOf } = field;
  const type = resolvedType instanceof protobuf.Enum ? 'enum' : resolvedType === null ? field.type : 'message';
  if (field.map) fail('is a map');
  if (resolvedType === null && !SCALARS.includes(type)) fail(`is a ${type}`);
  if (field.repeated && !REPEATABLE.includes(type)) fail(`is a repeated ${type}`);
  if (partOf !== null && type !== 'message') fail(`is a ${type} that may be absent`);
  const facts = [
    `number: ${field.id}`,
    `type: '${type}'`,
    ...(type === 'message' ? [`message: ${constantName(resolvedType?.name ?? '')}`] : []),
    ...(field.repeated ? ['repeated: true'] : []),
    ...(partOf === null ? [] : [`oneof: '${partOf.name}'`]),
  ];
  return `  ${field.name}: { ${facts.join(', ')} },`;
}

/** Returns the name of a table: turns `PodSandboxStatus` into `POD_SANDBOX_STATUS`, and `PodIP` into `POD_IP`. */
export function constantName(name: string): string {
  return name.replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, '_').toUpperCase();
}

function commentOf({ name, comment }: protobuf.Type | protobuf.Enum, fail: Fail): string {
  return comment ?? fail(`${name} has no comment above it`);
}

function docstring(text: string): string {
  const lines = text.split('\n');
  return lines.length === 1
    ? `/** ${text} */`
    : ['/**', ...lines.map((line) => ` * ${line}`.trimEnd()), ' */'].join('\n');
}
