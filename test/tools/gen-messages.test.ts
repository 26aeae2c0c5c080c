import test from 'ava';
import { renderMessages } from '../../tools/gen-messages.ts';

const render = (text: string): string => renderMessages('x.proto', `syntax = "proto3"; package p;\n${text}`);

test('renderMessages: writes a table and its types for each message, after those that it holds, and the numbers of enumerations', (t) => {
  const text = `
// Reply to Ask.
// In two lines.
message AskReply {
  oneof outcome { PodIP found = 1; Empty none = 7; }
  // Not in the table.
  repeated PodIP more_ips = 3;
  repeated Kind kinds = 4;
  int32 offset = 5;
}
// An address.
message PodIP { bytes ip = 1; uint64 age_ms = 2; bool is_last = 3; repeated string names = 4; repeated uint32 ports = 5; }
// Nothing.
message Empty {}
// Kinds.
enum Kind { KIND_A = 0; KIND_B = 5; }
`;
  t.is(
    render(text),
    [
      '/** An address. */',
      'export const POD_IP = {',
      "  ip: { number: 1, type: 'bytes' },",
      "  ageMs: { number: 2, type: 'uint64' },",
      "  isLast: { number: 3, type: 'bool' },",
      "  names: { number: 4, type: 'string', repeated: true },",
      "  ports: { number: 5, type: 'uint32', repeated: true },",
      '} as const satisfies MessageTable;',
      '/** POD_IP, decoded. */',
      'export type PodIP = MessageOf<typeof POD_IP>;',
      '/** POD_IP to encode: missing fields get their defaults. */',
      'export type PodIPInit = InitOf<typeof POD_IP>;',
      '',
      '/** Nothing. */',
      'export const EMPTY = {} as const satisfies MessageTable;',
      '/** EMPTY, decoded. */',
      'export type Empty = MessageOf<typeof EMPTY>;',
      '/** EMPTY to encode: missing fields get their defaults. */',
      'export type EmptyInit = InitOf<typeof EMPTY>;',
      '',
      '/**',
      ' * Kinds.',
      ' * The numbers of `enum Kind`.',
      ' */',
      'export const KIND = {',
      '  KIND_A: 0,',
      '  KIND_B: 5,',
      '} as const;',
      '/** One of KIND. A decoded message may hold a number of a later release; therefore its field is a plain number. */',
      'export type Kind = (typeof KIND)[keyof typeof KIND];',
      '',
      '/**',
      ' * Reply to Ask.',
      ' * In two lines.',
      ' */',
      'export const ASK_REPLY = {',
      "  found: { number: 1, type: 'message', message: POD_IP, oneof: 'outcome' },",
      "  none: { number: 7, type: 'message', message: EMPTY, oneof: 'outcome' },",
      "  moreIps: { number: 3, type: 'message', message: POD_IP, repeated: true },",
      "  kinds: { number: 4, type: 'enum', repeated: true },",
      "  offset: { number: 5, type: 'int32' },",
      '} as const satisfies MessageTable;',
      '/** ASK_REPLY, decoded. */',
      'export type AskReply = MessageOf<typeof ASK_REPLY>;',
      '/** ASK_REPLY to encode: missing fields get their defaults. */',
      'export type AskReplyInit = InitOf<typeof ASK_REPLY>;',
      '',
    ].join('\n'),
  );
});

for (const [text, message] of [
  ['message M { string a = 1; }', 'M has no comment above it'],
  ['// M.\nmessage M { double a = 1; }', 'M.a is a double'],
  ['// M.\nmessage M { int64 a = 1; }', 'M.a is a int64'],
  ['// M.\nmessage M { map<string, string> a = 1; }', 'M.a is a map'],
  ['// M.\nmessage M { repeated bytes a = 1; }', 'M.a is a repeated bytes'],
  ['// M.\nmessage M { repeated bool a = 1; }', 'M.a is a repeated bool'],
  ['// M.\nmessage M { optional string a = 1; }', 'M.a is a string that may be absent'],
  ['// M.\nmessage M { oneof o { string a = 1; } }', 'M.a is a string that may be absent'],
  ['// M.\nmessage M { N n = 1; }\n// N.\nmessage N { M m = 1; }', 'M holds itself'],
  ['// M.\nmessage M { message N {} }', 'M declares N inside itself'],
] as const) {
  test(`renderMessages: refuses ${text.replaceAll('\n', ' ')}`, (t) => {
    t.throws(() => render(text), { message: `x.proto: ${message}` });
  });
}

test('renderMessages: refuses a message that is not declared', (t) => {
  t.throws(() => render('// M.\nmessage M { N n = 1; }'), { message: /^x\.proto: no such Type or Enum 'N'/ });
});
