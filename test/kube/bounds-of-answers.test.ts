import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import test, { type ExecutionContext } from 'ava';
import { systemHttpGet } from '../../cloud/tencent/credentials/fetch-sources.ts';
import { readPages } from '../../cloud/tencent/paged.ts';
import { openSdkApi } from '../../cloud/tencent/sdk-api.ts';
import { answerError } from '../../kube/answer-error.ts';
import { compareRevisions } from '../../kube/compare-versions.ts';
import { describeBlindness } from '../../kube/find-silent-watches.ts';
import { openInformer } from '../../kube/informer.ts';
import type { KubeClient, ListPage } from '../../kube/kube-client.ts';
import { ANSWER_TOO_LARGE, isKubeError, KubeError } from '../../kube/kube-error.ts';
import { listPages } from '../../kube/list-pages.ts';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import { systemClock } from '../../runtime/clock.ts';
import { silentLogger } from '../../runtime/log.ts';
import { Child } from '../../sim/support/child.ts';
import { configMap, openTestClient, textOf } from './kube-scene.ts';

const ONE = { namespace: 'default', name: 'one' };
const QUERY = { resourceVersion: '1' };

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

/** Serves one answer to everything, until the test is over. */
async function serve(t: ExecutionContext, answer: Answer): Promise<string> {
  const server = createServer((request, response) => void answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A client of a server that gives one answer, and what the kind of its failure is. */
async function clientOf(t: ExecutionContext, answer: Answer, requestTimeoutMs = 20_000): Promise<KubeClient> {
  const { client, close } = openTestClient({ url: await serve(t, answer), token: 'any' }, { requestTimeoutMs });
  t.teardown(close);
  return client;
}

async function codeOf(work: Promise<unknown>): Promise<string> {
  return await work.then(
    () => 'ok',
    (error: unknown) => (isKubeError(error) ? error.code : String(error)),
  );
}

/** Writes as fast as it is read. */
function writeOn(response: ServerResponse, text: string): void {
  const write = (): void => {
    while (!response.destroyed && response.write(text));
    if (!response.destroyed) response.once('drain', write);
  };
  write();
}

async function drainWatch(client: KubeClient): Promise<number> {
  let events = 0;
  for await (const _ of client.watch(CONFIG_MAPS, QUERY, AbortSignal.timeout(60_000))) events += 1;
  return events;
}

function pageOf(names: readonly string[], continueToken?: string): ListPage {
  const items = names.map((name) => configMap(name, name));
  return { items, resourceVersion: '7', ...(continueToken === undefined ? {} : { continueToken }) };
}

async function readList(listPage: KubeClient['listPage']): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const { items } of listPages({ listPage }, CONFIG_MAPS, {}))
    names.push(...items.map(({ metadata }) => metadata.name));
  return names;
}

/** A client in a process of its own: what its call ends with, and how much memory the process had. */
async function readInProcess(url: string): Promise<{ readonly code: string; readonly mib: number }> {
  const program = join(import.meta.dirname, 'read-one.ts');
  const child = new Child([process.execPath, program, url]);
  const { code } = await child.exited;
  if (code !== 0) throw new Error(child.stderr);
  return JSON.parse(child.stdout);
}

const CASES: Readonly<Record<string, (t: ExecutionContext) => void | Promise<void>>> = {
  'Retry-After in seconds': async (t) => {
    const waitOf = (retryAfter: string) =>
      answerError({ request: 'r', status: 429, body: '', retryAfter }).retryAfterMs;
    t.deepEqual(['0', '5', '86400', '1e300', 'Infinity'].map(waitOf), [0, 5_000, 30_000, 30_000, 30_000]);
    t.is(
      answerError({ request: 'r', status: 429, body: { details: { retryAfterSeconds: 1e9 } } }).retryAfterMs,
      30_000,
    );
    const stop = new AbortController();
    const waits: number[] = [];
    let watches = 0;
    const client = {
      listPage: async () => pageOf(['a']),
      watch: async function* () {
        watches += 1;
        if (watches > 1) stop.abort();
        yield { kind: 'bookmark', resourceVersion: '8' };
        throw answerError({ request: 'WATCH', status: 429, body: '', retryAfter: '86400' });
      },
    } as unknown as KubeClient;
    const clock = { ...systemClock, sleep: async (ms: number) => void waits.push(ms) };
    const rest = { log: silentLogger, random: () => 0.5, decode: textOf };
    await openInformer({ client, type: CONFIG_MAPS, clock, ...rest }).start(stop.signal);
    t.is(watches, 2);
    t.deepEqual(waits, [30_000]);
  },
  'Retry-After as a date': (t) => {
    const date = { request: 'r', status: 429, body: '', retryAfter: 'Wed, 21 Oct 2099 07:28:00 GMT' };
    t.is(answerError(date).retryAfterMs, undefined);
    t.is(answerError({ ...date, retryAfter: '-5' }).retryAfterMs, undefined);
  },
  'an answer that does not end': async (t) => {
    const url = await serve(t, (request, response) => {
      if (request.url?.includes('small') === true) response.writeHead(404).end('{}');
      else writeOn(response.writeHead(200), 'x'.repeat(65_536));
    });
    const [small, endless] = [await readInProcess(`${url}/small`), await readInProcess(url)];
    t.is(endless.code, `BAD_ANSWER ${ANSWER_TOO_LARGE}`);
    t.log(`${small.mib.toFixed(0)} and ${endless.mib.toFixed(0)} MiB`);
    t.true(endless.mib - small.mib < 128, `${endless.mib - small.mib} MiB`);
    const limits: (number | undefined)[] = [];
    const names = await readList(async (_type, { limit, continueToken }) => {
      limits.push(limit);
      if ((limit ?? 0) > 100)
        throw new KubeError({ code: 'BAD_ANSWER', request: 'LIST', text: 'x', reason: ANSWER_TOO_LARGE });
      return continueToken === undefined ? pageOf(['a'], 'next') : pageOf(['b']);
    });
    t.deepEqual(
      [names, limits],
      [
        ['a', 'b'],
        [500, 250, 125, 62, 62],
      ],
    );
  },
  'an answer in tiny pieces': async (t) => {
    const client = await clientOf(t, async (_request, response) => {
      for (let sent = 0; sent < 40_000 && !response.destroyed; sent++)
        await new Promise((resolve) => response.write('x', resolve));
      response.end();
    });
    t.is(await codeOf(client.get(CONFIG_MAPS, ONE)), 'BAD_ANSWER');
  },
  'an answer that trickles': async (t) => {
    const client = await clientOf(
      t,
      async (_request, response) => {
        while (!response.destroyed) {
          response.write(' ');
          await sleep(20);
        }
      },
      400,
    );
    t.is(await codeOf(client.get(CONFIG_MAPS, ONE)), 'TIMEOUT');
  },
  'a line of a watch without an end': async (t) => {
    const client = await clientOf(t, (_request, response) => writeOn(response, 'x'.repeat(65_536)));
    t.is(await codeOf(drainWatch(client)), 'BAD_ANSWER');
  },
  'a watch that says nothing': (t) => {
    const clock = { monotonicMs: () => 20 * 60_000 };
    const heard = { isSynced: true, lastContactMs: 11 * 60_000 };
    t.is(describeBlindness([['pods', heard]], clock), undefined);
    const blind = { isSynced: true, lastContactMs: 9 * 60_000 };
    t.is(
      describeBlindness(
        [
          ['pods', heard],
          ['nodes', blind],
        ],
        clock,
      ),
      'nothing heard for 10 minutes of: nodes',
    );
  },
  redirects: async (t) => {
    let others = 0;
    const other = await serve(t, (_request, response) => {
      others += 1;
      response.end(JSON.stringify(configMap('one')));
    });
    const client = await clientOf(t, (_request, response) => response.writeHead(307, { location: other }).end());
    t.is(await codeOf(client.get(CONFIG_MAPS, ONE)), 'BAD_ANSWER');
    t.is(await codeOf(drainWatch(client)), 'BAD_ANSWER');
    t.is(others, 0);
  },
  'compressed answers': async (t) => {
    const body = gzipSync(JSON.stringify(configMap('one')));
    const client = await clientOf(t, (_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(body),
    );
    t.is(await codeOf(client.get(CONFIG_MAPS, ONE)), 'BAD_ANSWER');
  },
  'headers without an end': async (t) => {
    const client = await clientOf(t, ({ socket }) => {
      socket.write(`HTTP/1.1 200 OK\r\n${'x: y\r\n'.repeat(10_000)}`);
    });
    t.is(await codeOf(client.get(CONFIG_MAPS, ONE)), 'UNAVAILABLE');
  },
  'interim answers (1xx) without an end': async (t) => {
    const client = await clientOf(
      t,
      async ({ socket }) => {
        for (; !socket.destroyed; await sleep(1)) socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100));
      },
      400,
    );
    t.is(await codeOf(client.get(CONFIG_MAPS, ONE)), 'TIMEOUT');
  },
  'pages of a list without an end': async (t) => {
    let pages = 0;
    const more = (names: readonly string[]) => async () => pageOf(names, `after ${++pages}`);
    t.is(await codeOf(readList(more([]))), 'BAD_ANSWER');
    t.is(pages, 10_001);
    pages = 0;
    t.is(await codeOf(readList(more(Array.from({ length: 20_000 }, (_, index) => `m${index}`)))), 'BAD_ANSWER');
    t.is(pages, 26);
  },
  'a page that leads to an earlier one': async (t) => {
    let pages = 0;
    t.is(await codeOf(readList(async () => pageOf([`m${pages}`], `token ${++pages % 3}`))), 'BAD_ANSWER');
    t.is(pages, 4);
  },
  'a revision or token of any length': async (t) => {
    for (const metadata of [
      { resourceVersion: '1'.repeat(5_000) },
      { resourceVersion: '1', continue: 'x'.repeat(5_000) },
    ]) {
      const client = await clientOf(t, (_request, response) => response.end(JSON.stringify({ metadata, items: [] })));
      t.is(await codeOf(client.listPage(CONFIG_MAPS, {})), 'BAD_ANSWER');
    }
    const digits = '9'.repeat(1_000_000);
    t.deepEqual(
      [compareRevisions(digits, `${digits}1`), compareRevisions('10', '9'), compareRevisions('a', '1')],
      [-1, 1, undefined],
    );
  },
  'revisions that go back': async (t) => {
    const stop = new AbortController();
    const failures: unknown[] = [];
    let lists = 0;
    const client = {
      listPage: async () => {
        lists += 1;
        if (lists > 1) stop.abort();
        return pageOf(['a']);
      },
      watch: async function* () {
        yield { kind: 'bookmark', resourceVersion: '3' };
      },
    } as unknown as KubeClient;
    const clock = { ...systemClock, sleep: async () => {} };
    const observer = { onFailure: (_type: unknown, error: unknown) => failures.push(error) };
    const rest = { log: silentLogger, random: () => 0.5, decode: textOf, observer };
    await openInformer({ client, type: CONFIG_MAPS, clock, ...rest }).start(stop.signal);
    t.is(lists, 2);
    t.true(isKubeError(failures[0], 'EXPIRED'));
  },
  'a count of the cloud that is a lie': async (t) => {
    let calls = 0;
    const page = Array.from({ length: 100 }, (_, index) => `eni-${index}`);
    const { objects, isConsistent } = await readPages(
      async () => {
        calls += 1;
        return { objects: page, total: Number.MAX_SAFE_INTEGER };
      },
      (id) => id,
    );
    t.deepEqual([calls, objects.length, isConsistent], [6_000, 100, false]);
  },
  'an answer of the cloud without an end': async (t) => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20));
    const compressed = await cloudOf(t, (_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb),
    );
    t.is(await compressed(), 'NETWORK');
    const endless = await cloudOf(t, (_request, response) => writeOn(response, ' '.repeat(65_536)));
    t.is(await endless(), 'NETWORK');
    const refused = await cloudOf(t, (_request, response) => writeOn(response.writeHead(500), ' '.repeat(65_536)));
    t.is(await refused(), 'HTTP_500');
  },
  'redirects of the cloud': async (t) => {
    let others = 0;
    const other = await serve(t, (_request, response) => {
      others += 1;
      response.end(JSON.stringify({ Response: { RequestId: 'r' } }));
    });
    const call = await cloudOf(t, (_request, response) => response.writeHead(307, { location: other }).end());
    t.is(await call(), 'NETWORK');
    t.is(others, 0);
  },
  'an answer of the metadata server without an end, or a redirect': async (t) => {
    const signal = AbortSignal.timeout(20_000);
    const endless = await serve(t, (_request, response) => writeOn(response, 'x'.repeat(4_096)));
    await t.throwsAsync(systemHttpGet(endless, signal), { message: /more than 65536 bytes/ });
    const away = await serve(t, (_request, response) => response.writeHead(302, { location: endless }).end('moved'));
    t.deepEqual(await systemHttpGet(away, signal), { status: 302, body: 'moved' });
  },
};

/** A call of the cloud's API at a server that gives one answer: the code of its failure. */
async function cloudOf(t: ExecutionContext, answer: Answer): Promise<() => Promise<string>> {
  const host = new URL(await serve(t, answer)).host;
  const credentials = { get: async () => ({ secretId: 'a', secretKey: 'b' }), invalidate: () => {} };
  const api = openSdkApi({ region: 'ap-guangzhou', protocol: 'http', hosts: { vpc: host } }, credentials);
  return async () =>
    await api.call('DescribeSubnets', {}, AbortSignal.timeout(20_000)).then(
      () => 'ok',
      (error: unknown) => String(Reflect.get(Object(error), 'code')),
    );
}

for (const [row, check] of Object.entries(CASES)) test(`bounds of answers: ${row}`, check);

test('docs/kube.md: each row of what a server may tell has a test', (t) => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'kube.md'), 'utf8');
  const table = page.split('| what a server tells |')[1]?.split('\n\n')[0] ?? '';
  const rows = table
    .split('\n')
    .slice(2)
    .map((line) => line.split('|')[1]?.trim());
  t.deepEqual(rows, Object.keys(CASES));
});
