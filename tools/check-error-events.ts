/**
 * Checks that each watch, stream, socket, server, request and child process of the product has a listener of its event `error`:
 * one without ends the process. A listener is attached where the thing is made, by its name in the same file, or by a function
 * that it is given to (`handlers` of `tools/error-events.json`, each of which attaches one itself). Other places are in
 * `exceptions` there, with their number and why they do no harm. Watches are made in one file, and what starts processes may throw. Messages of HTTP need none: Node drops an `error` of theirs that nobody
 * listens to. Prints every violation and exits 1; prints one line and exits 0 when there is none.
 */
import { globSync, readFileSync } from 'node:fs';
import { type SyntaxNode, syntaxNodes } from './parse-source.ts';

/** What the check takes for granted. */
type ErrorEventTable = {
  /** Functions that attach a listener to what they are given, by name, with the file that has each. */
  readonly handlers: Readonly<Record<string, string>>;
  /** By file: places without a listener, and why they do no harm. */
  readonly exceptions: Readonly<Record<string, { readonly places: number; readonly why: string }>>;
};

/** What makes something with an event `error`, by module. */
const MAKERS: Readonly<Record<string, readonly string[]>> = {
  fs: ['watch', 'createReadStream', 'createWriteStream'],
  net: ['createServer', 'connect', 'createConnection', 'Socket', 'Server'],
  tls: ['createServer', 'connect', 'TLSSocket', 'Server'],
  http: ['createServer', 'request', 'get', 'ClientRequest'],
  https: ['createServer', 'request', 'get'],
  http2: ['createServer', 'createSecureServer', 'connect'],
  child_process: ['spawn', 'fork', 'exec', 'execFile'],
  dgram: ['createSocket', 'Socket'],
  worker_threads: ['Worker'],
  readline: ['createInterface'],
  stream: ['Duplex', 'Readable', 'Writable', 'Transform', 'PassThrough'],
  zlib: [
    'createGzip',
    'createGunzip',
    'createDeflate',
    'createInflate',
    'createBrotliCompress',
    'createBrotliDecompress',
  ],
};
/** Methods that make a stream, whoever has them. */
const STREAM_METHODS = new Set(['makeServerStreamRequest', 'makeClientStreamRequest', 'makeBidiStreamRequest']);
/** Of these the last argument, a function, gets the error. */
const WITH_CALLBACK = new Set(['exec', 'execFile']);
/** These throw at once where the system refuses (EMFILE, ENOSPC, ENOMEM, EAGAIN). */
const THROWING = new Set(['spawn', 'fork', 'exec', 'execFile', 'Worker']);
/** The one file that may watch: it polls where it cannot. */
const WATCHER = 'runtime/watch-folder.ts';
/** A server emits `error` for as long as it lives, a watch and a child process too; a stream does so once. */
const LASTING = new Set(['createServer', 'createSecureServer', 'Server', 'watch', 'fork', 'Worker']);
const CONNECTIONS = new Set(['createServer']);
const STDIO = new Set(['stdin', 'stdout', 'stderr']);

/** Lists the places of a source that have no listener, as `line: what`. Pure. */
export function findUnheard(text: string, handlers: ReadonlySet<string> = new Set()): readonly string[] {
  if (
    !/['"](?:node:)?(?:fs|net|tls|https?|http2|child_process|dgram|worker_threads|readline|stream|zlib)['"]/.test(text)
  ) {
    if (![...STREAM_METHODS].some((method) => text.includes(method))) return [];
  }
  const source = new Source(text, handlers);
  return source.unheard().toSorted((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
}

class Source {
  readonly #nodes: readonly SyntaxNode[];
  readonly #text: string;
  readonly #handlers: ReadonlySet<string>;
  /** Local names of makers: the name in their module, and the module. */
  readonly #makers = new Map<string, { readonly name: string; readonly module: string }>();

  /** Calls of makers whose listener is the matter of who calls their function. */
  readonly #returned = new Set<SyntaxNode>();

  constructor(text: string, handlers: ReadonlySet<string>) {
    this.#nodes = syntaxNodes(text);
    this.#text = text;
    this.#handlers = handlers;
    for (const node of this.#nodes) if (node.type === 'ImportDeclaration') this.#import(node);
    for (const node of this.#nodes) this.#noteFactory(node);
  }

  unheard(): readonly string[] {
    return this.#nodes.flatMap((node) => {
      const made = this.#madeBy(node);
      if (made === undefined || this.#returned.has(node)) return [];
      return [
        ...this.#unguarded(node, made.name),
        ...this.#unheardOf(node, made.name),
        ...this.#unheardStdio(node, made),
        ...this.#unheardPeers(node, made),
      ];
    });
  }

  #import(node: SyntaxNode): void {
    const module = String((node['source'] as { readonly value: unknown }).value).replace(/^node:/, '');
    const names = MAKERS[module];
    if (names === undefined) return;
    for (const { imported, local } of node['specifiers'] as readonly Specifier[]) {
      if (imported !== undefined && names.includes(imported.name))
        this.#makers.set(local.name, { name: imported.name, module });
    }
  }

  /** A function of the file that returns what it makes is a maker too. */
  #noteFactory(node: SyntaxNode): void {
    if (node.type !== 'FunctionDeclaration') return;
    const returns = this.#nodes.filter(
      (one) => one.type === 'ReturnStatement' && isWithin(one, node) && !isInFunction(this.#nodes, one, node),
    );
    for (const call of this.#nodes) {
      const made = this.#madeBy(call);
      if (made === undefined || !returns.some((one) => isDirectly(call, one['argument']))) continue;
      this.#returned.add(call);
      this.#makers.set(String((node['id'] as SyntaxNode)['name']), made);
    }
  }

  #madeBy(node: SyntaxNode): { readonly name: string; readonly module: string } | undefined {
    if (node.type !== 'CallExpression' && node.type !== 'NewExpression') return undefined;
    const callee = node['callee'] as SyntaxNode;
    if (callee.type === 'Identifier') return this.#makers.get(String(callee['name']));
    const method = propertyOf(callee);
    return method !== undefined && STREAM_METHODS.has(method) ? { name: method, module: 'grpc' } : undefined;
  }

  /** What throws at once stands in a `try`, or where an error rejects a promise. */
  #unguarded(node: SyntaxNode, name: string): readonly string[] {
    if (!THROWING.has(name)) return [];
    const isGuarded = this.#nodes.some(
      (one) =>
        isWithin(node, one) &&
        ((one.type === 'TryStatement' && isWithin(node, one['block'] as SyntaxNode)) ||
          (/Function/.test(one.type) && one['async'] === true) ||
          (one.type === 'NewExpression' && (one['callee'] as SyntaxNode)['name'] === 'Promise')),
    );
    return isGuarded ? [] : [`${lineOf(node)}: ${name} may throw at once`];
  }

  #unheardOf(node: SyntaxNode, name: string): readonly string[] {
    const last = argumentsOf(node).at(-1);
    if (WITH_CALLBACK.has(name) && last !== undefined && isFunction(last)) return [];
    const isLasting = LASTING.has(name);
    if (this.#hasListener((object) => isWithin(node, object) && !isInFunction(this.#nodes, node, object), isLasting))
      return [];
    const names = this.#namesOf(node);
    if (names.some((one) => this.#isHeard(one, isLasting))) return [];
    if (this.#isGiven((argument) => argument.start === node.start)) return [];
    return [`${lineOf(node)}: ${name} without a listener of 'error'`];
  }

  /** Pipes of a child process break when it ends before it has read. */
  #unheardStdio(node: SyntaxNode, { module }: { readonly module: string }): readonly string[] {
    if (module !== 'child_process') return [];
    return this.#namesOf(node)
      .flatMap((name) =>
        [...STDIO].filter((pipe) => {
          const uses = this.#nodes.filter(
            (one) => propertyOf(one) === pipe && this.#textOf(one['object'] as SyntaxNode) === name,
          );
          return uses.length > 0 && !this.#isHeard(`${name}.${pipe}`, false);
        }),
      )
      .map((pipe) => `${lineOf(node)}: ${pipe} of a child process without a listener of 'error'`);
  }

  /** Connections that a server of sockets accepts. */
  #unheardPeers(
    node: SyntaxNode,
    { name, module }: { readonly name: string; readonly module: string },
  ): readonly string[] {
    if (module !== 'net' || !CONNECTIONS.has(name)) return [];
    const accept = argumentsOf(node)
      .map((argument) => this.#functionOf(argument))
      .find((one) => one !== undefined);
    const [peer] = (accept?.['params'] as readonly SyntaxNode[] | undefined) ?? [];
    if (peer === undefined || this.#isHeard(this.#textOf(peer), false, accept)) return [];
    return [`${lineOf(node)}: connections of a server without a listener of 'error'`];
  }

  #functionOf(node: SyntaxNode): SyntaxNode | undefined {
    if (isFunction(node) && node.type !== 'Identifier') return node;
    const name = this.#textOf(node);
    for (const one of this.#nodes) {
      if (one.type === 'FunctionDeclaration' && (one['id'] as SyntaxNode | null)?.['name'] === name) return one;
      const init = one.type === 'VariableDeclarator' ? (one['init'] as SyntaxNode | null) : null;
      if (init !== null && isFunction(init) && this.#textOf(one['id'] as SyntaxNode) === name) return init;
    }
    return undefined;
  }

  /** Names that what a node makes is bound to. */
  #namesOf(node: SyntaxNode): readonly string[] {
    return this.#nodes.flatMap((one) => {
      if (one.type === 'VariableDeclarator' && isDirectly(node, one['init']))
        return this.#textOf(one['id'] as SyntaxNode);
      if (one.type === 'AssignmentExpression' && isDirectly(node, one['right']))
        return this.#textOf(one['left'] as SyntaxNode);
      return [];
    });
  }

  /** @param scope A function, where the name is its parameter. */
  #isHeard(name: string, isLasting: boolean, scope?: SyntaxNode): boolean {
    const isHere = (node: SyntaxNode): boolean => scope === undefined || isWithin(node, scope);
    const isNamed = (object: SyntaxNode): boolean => isHere(object) && this.#chainStartsWith(object, name);
    return (
      this.#hasListener(isNamed, isLasting) ||
      this.#isGiven((argument) => isHere(argument) && this.#textOf(argument) === name)
    );
  }

  /** Reports whether `error` is listened to on an object; `once` is enough for what emits it once. */
  #hasListener(isObject: (object: SyntaxNode) => boolean, isLasting: boolean): boolean {
    return this.#nodes.some((node) => {
      if (node.type !== 'CallExpression') return false;
      const callee = node['callee'] as SyntaxNode;
      const method = propertyOf(callee);
      const isListening = method === 'on' || method === 'addListener' || (method === 'once' && !isLasting);
      const [event] = argumentsOf(node);
      return isListening && event !== undefined && this.#isError(event) && isObject(callee['object'] as SyntaxNode);
    });
  }

  /** The text 'error', or the variable of a loop over texts of which it is one. */
  #isError(event: SyntaxNode): boolean {
    if (event['value'] === 'error') return true;
    return this.#nodes.some(
      (node) =>
        node.type === 'ForOfStatement' &&
        this.#textOf(node['left'] as SyntaxNode).endsWith(` ${this.#textOf(event)}`) &&
        this.#textOf(node['right'] as SyntaxNode).includes("'error'"),
    );
  }

  #isGiven(isArgument: (argument: SyntaxNode) => boolean): boolean {
    return this.#nodes.some((node) => {
      if (node.type !== 'CallExpression') return false;
      const callee = node['callee'] as SyntaxNode;
      const name = propertyOf(callee) ?? String(callee['name']);
      return this.#handlers.has(name) && argumentsOf(node).flatMap(branchesOf).some(isArgument);
    });
  }

  /** `a.on(…).on(…)` and `a?.setEncoding(…).on(…)` listen on `a`. */
  #chainStartsWith(object: SyntaxNode, name: string): boolean {
    if (this.#textOf(object) === name) return true;
    const callee = object.type === 'CallExpression' ? (object['callee'] as SyntaxNode) : undefined;
    if (object.type === 'ChainExpression') return this.#chainStartsWith(object['expression'] as SyntaxNode, name);
    return (
      callee !== undefined &&
      propertyOf(callee) !== undefined &&
      this.#chainStartsWith(callee['object'] as SyntaxNode, name)
    );
  }

  #textOf(node: SyntaxNode): string {
    return this.#text.slice(node.start, node.end).replaceAll('?.', '.').trim();
  }
}

type Specifier = { readonly imported?: { readonly name: string }; readonly local: { readonly name: string } };

function argumentsOf(node: SyntaxNode): readonly SyntaxNode[] {
  return node['arguments'] as readonly SyntaxNode[];
}

function propertyOf(node: SyntaxNode): string | undefined {
  if (node.type === 'ChainExpression') return propertyOf(node['expression'] as SyntaxNode);
  return node.type === 'MemberExpression' ? String((node['property'] as SyntaxNode)['name']) : undefined;
}

function isFunction(node: SyntaxNode): boolean {
  return ['ArrowFunctionExpression', 'FunctionExpression', 'Identifier'].includes(node.type);
}

/** What a condition may lead to. */
function branchesOf(node: SyntaxNode): readonly SyntaxNode[] {
  if (node.type !== 'ConditionalExpression') return [node];
  return [node['consequent'], node['alternate']].flatMap((branch) => branchesOf(branch as SyntaxNode));
}

function isWithin(inner: SyntaxNode, outer: SyntaxNode): boolean {
  return inner.start >= outer.start && inner.end <= outer.end;
}

/** Reports whether a function is between a node and what has it. */
function isInFunction(nodes: readonly SyntaxNode[], node: SyntaxNode, outer: SyntaxNode): boolean {
  return nodes.some((one) => one !== outer && /Function/.test(one.type) && isWithin(node, one) && isWithin(one, outer));
}

/** The value itself, awaited, or one side of a condition. */
function isDirectly(node: SyntaxNode, value: unknown): boolean {
  const holder = value as SyntaxNode | null | undefined;
  if (holder === null || holder === undefined) return false;
  if (holder.start === node.start && holder.end === node.end) return true;
  const parts = ['argument', 'consequent', 'alternate', 'left', 'right', 'expression'];
  if (!['AwaitExpression', 'ConditionalExpression', 'LogicalExpression', 'ChainExpression'].includes(holder.type))
    return false;
  return parts.some((part) => isDirectly(node, holder[part]));
}

function lineOf(node: SyntaxNode): number {
  return node.loc?.start.line ?? 0;
}

/** Compares the sources with the table. Pure. */
export function checkErrorEvents(
  sources: readonly { readonly path: string; readonly text: string }[],
  { handlers, exceptions }: ErrorEventTable,
): readonly string[] {
  const names = new Set(Object.keys(handlers));
  const found = new Map(sources.map(({ path, text }) => [path, findUnheard(text, names)]));
  const watching = sources.filter(
    ({ path, text }) =>
      path !== WATCHER && /import [^;]*\b(?:watch|watchFile)\b[^;]*from '(?:node:)?fs(?:\/promises)?'/.test(text),
  );
  const wrong = [...found].flatMap(([path, places]) => {
    const wanted = exceptions[path]?.places ?? 0;
    if (places.length === wanted) return [];
    return [`${path}: ${places.length} places, ${wanted} in tools/error-events.json: ${places.join('; ') || 'none'}`];
  });
  const gone = [...Object.keys(exceptions), ...Object.values(handlers).filter((path) => path !== LIBRARY)].filter(
    (path) => !found.has(path),
  );
  const mute = Object.entries(exceptions).filter(([, { why }]) => why.trim().length < MIN_WHY);
  return [
    ...watching.map(({ path }) => `${path}: watches by itself; use watchFolder of ${WATCHER}, and poll`),
    ...wrong,
    ...gone.map((path) => `tools/error-events.json: there is no ${path}`),
    ...mute.map(([path]) => `tools/error-events.json: ${path} needs a reason`),
  ];
}

/** In the place of a file: a library has the function. */
const LIBRARY = '@grpc/grpc-js';
/** A reason of fewer characters is none. */
const MIN_WHY = 20;

if (import.meta.main) {
  const outside = ['node_modules/**', 'dist/**', 'test/**', 'sim/**', 'bench/**', 'tools/**', 'examples/**', '*.ts'];
  const paths = globSync('**/*.ts', { exclude: outside }).sort();
  const sources = paths.map((path) => ({ path, text: readFileSync(path, 'utf8') }));
  const violations = checkErrorEvents(
    sources,
    JSON.parse(readFileSync('tools/error-events.json', 'utf8')) as ErrorEventTable,
  );
  for (const violation of violations) console.error(violation);
  console.error(`error events: ${paths.length} files, ${violations.length} violations`);
  process.exitCode = violations.length === 0 ? 0 : 1;
}
