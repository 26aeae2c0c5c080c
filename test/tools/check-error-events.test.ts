import test from 'ava';
import { checkErrorEvents, findUnheard } from '../../tools/check-error-events.ts';

const finds = test.macro((t, text: string, found: readonly RegExp[]) => {
  const unheard = findUnheard(text, new Set(['listenOn', 'injectConnection']));
  t.is(unheard.length, found.length, unheard.join('\n'));
  for (const [index, pattern] of found.entries()) t.regex(unheard[index] ?? '', pattern);
});

test(
  'findUnheard: a server, a socket and a stream that nobody listens to',
  finds,
  "import { createServer as serve, connect } from 'node:net';\nimport { createReadStream } from 'fs';\nconst s = serve();\ns.on('close', a);\nconnect(path);\ncall(createReadStream(path));",
  [/^3: createServer/, /^5: connect/, /^6: createReadStream/],
);
test(
  'findUnheard: not what is listened to by its name, in a chain, in a field, by a loop over events, by a handler',
  finds,
  [
    "import { createServer, connect } from 'node:net';",
    'const a = createServer();',
    "a.on('error', f);",
    "connect(p).setTimeout(9).once('error', f);",
    'this.b = connect(p);',
    "this.b.on('error', f);",
    'const c = tls ?? connect(p);',
    "for (const event of ['close', 'error'] as const) c.on(event, f);",
    'const d = createServer();',
    'await listenOn(d, address);',
  ].join('\n'),
  [],
);
test(
  'findUnheard: once is enough for what ends with its error, and not for a server',
  finds,
  "import { createServer, connect } from 'node:net';\nconst a = createServer();\na.once('error', f);\nconst b = connect(p);\nb.once('error', f);",
  [/^2: createServer/],
);
test(
  'findUnheard: connections of a server, by a function of its own name too',
  finds,
  [
    "import { createServer } from 'node:net';",
    'const accept = (peer: Socket): void => peer.resume();',
    "createServer(accept).on('error', f);",
    "createServer((peer) => peer.on('error', f)).on('error', f);",
    "createServer((peer) => injector.injectConnection(isOld ? old(peer) : peer)).on('error', f);",
  ].join('\n'),
  [/^3: connections/],
);
test(
  'findUnheard: a child process, its pipes, and what may throw at once',
  finds,
  [
    "import { execFile, spawn } from 'node:child_process';",
    'function start() { spawn(file).on("error", f); }',
    'async function run() {',
    '  const child = spawn(file);',
    "  child.on('error', f);",
    "  child.stdin?.on('error', f);",
    '  child.stdin?.end(input);',
    "  child.stderr?.setEncoding('utf8').on('data', f);",
    '}',
    'new Promise((resolve) => execFile(file, args, (error) => resolve(error)));',
  ].join('\n'),
  [/^2: spawn may throw/, /^4: stderr/],
);
test(
  'findUnheard: what a function returns is the matter of who calls it',
  finds,
  "import { connect } from 'node:net';\nfunction open(p) { return p.a ? connect(p.a) : connect(p.b); }\nconst a = open(p);\na.on('error', f);\nconst b = open(p);",
  [/^5: connect/],
);
test('findUnheard: streams of gRPC', finds, 'const s = client.makeServerStreamRequest(path);\ns.on("data", f);', [
  /^1: make/,
]);

test('checkErrorEvents: a watch of its own, a new place, an entry too many, one without a reason', (t) => {
  const why = 'its caller listens to it before anything happens';
  const sources = [
    { path: 'a.ts', text: "import { watch } from 'node:fs';\ntry { watch(p).on('error', f); } catch {}" },
    { path: 'b.ts', text: "import { connect } from 'node:net';\nconnect(p);" },
    { path: 'c.ts', text: '' },
  ];
  const found = checkErrorEvents(sources, {
    handlers: { listenOn: 'd.ts' },
    exceptions: { 'c.ts': { places: 1, why: '' } },
  });
  t.is(found.length, 5, found.join('\n'));
  for (const [index, path] of ['a.ts', 'b.ts', 'c.ts', 'd.ts', 'c.ts'].entries()) t.true(found[index]?.includes(path));
  t.deepEqual(checkErrorEvents(sources.slice(1, 2), { handlers: {}, exceptions: { 'b.ts': { places: 1, why } } }), []);
});
