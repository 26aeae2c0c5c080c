import test from 'ava';
import { checkFileReads, findFileReads } from '../../tools/check-file-reads.ts';

const finds = test.macro((t, text: string, lines: readonly number[]) => {
  t.deepEqual(findFileReads(text), lines);
});

test(
  'findFileReads: calls, passed on, under another name',
  finds,
  "import { readFileSync as read, openSync } from 'node:fs';\nread(path);\ncall({ open: openSync });\nconst x: string = read(a);",
  [2, 3, 4],
);
test(
  'findFileReads: promises and streams',
  finds,
  "import { open } from 'node:fs/promises';\nimport { createReadStream } from 'fs';\nawait open(a);\ncreateReadStream(a);",
  [3, 4],
);
test('findFileReads: all of the module', finds, "import * as fs from 'node:fs';\nimport files from 'fs';", [1, 2]);
test(
  'findFileReads: by a call, passed on to others',
  finds,
  "await import('node:fs/promises');\nexport { readFileSync } from 'node:fs';\nprocess.getBuiltinModule('fs');\nrequire('node:fs');",
  [1, 2, 3, 4],
);
test(
  'findFileReads: not what reads no file, comments, texts, types, methods of others',
  finds,
  "import { statSync, readFileSync } from 'node:fs';\n// readFileSync(a)\nstatSync(a);\nconst t = 'readFileSync(a) // b';\nthing.readFileSync(a);",
  [],
);

test('checkFileReads: a new read, one more, a file that is gone, an entry without a reason', (t) => {
  const why = 'files of /proc, which the kernel bounds';
  const text = "import { readFileSync } from 'node:fs';\nreadFileSync(a);";
  const sources = ['a.ts', 'b.ts', 'c.ts'].map((path) => ({
    path,
    text: path === 'b.ts' ? `${text}\nreadFileSync(b);` : text,
  }));
  const table = { 'b.ts': { reads: 1, why }, 'c.ts': { reads: 1, why: '' }, 'e.ts': { reads: 1, why } };
  const found = checkFileReads(sources, table);
  t.is(found.length, 4, found.join('\n'));
  for (const [index, path] of ['a.ts', 'b.ts', 'e.ts', 'c.ts'].entries()) t.true(found[index]?.includes(path));
  t.deepEqual(checkFileReads(sources.slice(0, 1), { 'a.ts': { reads: 1, why } }), []);
});
