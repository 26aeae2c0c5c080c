import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import test from 'ava';
import { parseAllDocuments } from 'yaml';
import { OPTIONS } from '../../agent/config/options.ts';
import { readUninstallConfig, UNINSTALL_OPTIONS } from '../../agent/uninstall/uninstall-config.ts';
import { productOf } from '../../cloud/tencent/requests.ts';
import { CCM_PROGRAM } from '../../cloud-controller-manager/config/options.ts';
import { IPAMD_PROGRAM } from '../../ipamd/config/options.ts';
import { SCHEDULER_PROGRAM } from '../../scheduler/config/options.ts';
import { WEBHOOK_PROGRAM } from '../../webhook/options.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const PAGES = [
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md'],
  ...['docs', 'conf', 'test', 'bench', 'examples'].flatMap(pagesBelow),
];

function pagesBelow(folder: string): readonly string[] {
  return readdirSync(join(ROOT, folder), { recursive: true })
    .map((name) => join(folder, String(name)))
    .filter((path) => path.endsWith('.md'));
}

/** Returns the anchors of a page's headings, as GitHub makes them. */
function anchorsOf(page: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const headings = read(page)
    .replaceAll(/```[\s\S]*?```/g, '')
    .matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, heading = '']) => {
      const slug = heading
        .toLowerCase()
        .replaceAll(/[^\p{Letter}\p{Number}_ -]/gu, '')
        .replaceAll(' ', '-');
      const times = seen.get(slug) ?? 0;
      seen.set(slug, times + 1);
      return times === 0 ? slug : `${slug}-${times}`;
    }),
  );
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function withoutCode(text: string): string {
  return text.replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, '');
}

test('docs: every link to a file of the repository leads to one, and to a heading of it', (t) => {
  const dangling = PAGES.flatMap((page) => {
    const links = withoutCode(read(page)).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)/g);
    return [...links].flatMap(([link, target = '', anchor]) => {
      const path = target === '' ? page : join(dirname(page), target);
      if (!existsSync(join(ROOT, path))) return [`${page}: ${link}`];
      const isHeading = anchor === undefined || !path.endsWith('.md') || anchorsOf(path).has(anchor);
      return isHeading ? [] : [`${page}: ${link}: no such heading`];
    });
  });
  t.deepEqual(dangling, []);
});

test('docs/reference: holds the pages that are made from the source, and no others', (t) => {
  const isMade = (page: string) => read(page).split('\n').slice(0, 4).join('\n').includes('make gen');
  t.deepEqual(pagesBelow('docs').filter(isMade).toSorted(), pagesBelow('docs/reference').toSorted());
});

test('docs/README.md: leads to every page', (t) => {
  const index = read('docs/README.md');
  const missing = [
    ...readdirSync(join(ROOT, 'docs')),
    ...pagesBelow('docs/reference').map((page) => relative('docs', page)),
  ]
    .filter((name) => name !== 'README.md' && name !== 'reference')
    .filter((name) => !index.includes(`](${name}`));
  t.deepEqual(missing, []);
});

test('docs: every flag that the pages for users name is there', (t) => {
  const flags = new Set(
    [
      OPTIONS,
      UNINSTALL_OPTIONS,
      ...[IPAMD_PROGRAM, SCHEDULER_PROGRAM, WEBHOOK_PROGRAM, CCM_PROGRAM].map(({ options }) => options),
    ]
      .flatMap((table) => Object.values(table))
      .map(({ flag }) => flag)
      // Of kube-apiserver, helm, kube-proxy, kubectl.
      .concat('admission-control-config-file', 'enable-aggregator-routing', 'kube-version', 'detect-local-mode')
      .concat('force-conflicts'),
  );
  const unknown = [
    'docs/operations.md',
    'docs/upgrade.md',
    'docs/install.md',
    'docs/uninstall.md',
    'docs/static-ip.md',
    'docs/not-given-back.md',
  ].flatMap((page) =>
    [...read(page).matchAll(/`--([a-z-]+)/g)].map(([, flag = '']) => flag).filter((flag) => !flags.has(flag)),
  );
  t.deepEqual(unknown, []);
});

test('docs/install.md: the CAM policy grants every change that ipamd makes, and nothing that nobody calls', (t) => {
  const [, policy = ''] = /```json\n([\s\S]*?)```/.exec(read('docs/install.md')) ?? [];
  const { statement } = JSON.parse(policy) as { statement: { action: string[] }[] };
  const granted = statement.flatMap(({ action }) => action);
  const changes = [...read('ipamd/calls/send-call.ts').matchAll(/case '(\w+)':/g)].map(([, action = '']) => action);
  t.true(changes.length > 5);
  const wanted = changes.map((action) => `vpc:${action}`);
  t.deepEqual(
    wanted.filter((action) => !granted.includes(action)),
    [],
  );
  const callers = read('cloud/tencent/requests.ts');
  for (const action of granted) {
    const [product, name = ''] = action.split(':');
    t.true(callers.includes(`readonly ${name}: `), `${action} is an API that we call`);
    t.is(String(productOf(name as Parameters<typeof productOf>[0])), product ?? '');
  }
});

test('conf/kubernetes/uninstall: runs what `tke-eni-agent uninstall` takes, with every place that it cleans mounted', (t) => {
  const [daemonSet] = parseAllDocuments(read('conf/kubernetes/uninstall/daemonset.yaml')).map((one) => one.toJS());
  const { initContainers, containers, volumes } = daemonSet.spec.template.spec;
  for (const { args, volumeMounts } of [...initContainers, ...containers]) {
    t.is(args[0], 'uninstall');
    const outcome = readUninstallConfig({ argv: args.slice(1), env: {}, readFile: () => '' });
    if (outcome.kind !== 'run') return t.fail('the arguments ask for help');
    const mounts = volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
    const { socket, stateDir, cniBinDir, cniConfDir, kubeletDir } = outcome.config;
    for (const place of [socket, stateDir, cniBinDir, cniConfDir, join(kubeletDir, 'device-plugins')]) {
      t.true(
        mounts.some((path: string) => `${place}/`.startsWith(`${path}/`)),
        `${place} is mounted`,
      );
    }
    t.false(mounts.includes(stateDir), 'a mount would make the folder again that is to go');
    for (const { hostPath } of volumes)
      t.true(mounts.includes(hostPath.path), `${hostPath.path} is seen at its own path`);
  }
});
