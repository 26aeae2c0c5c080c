/**
 * Makes the container images in dist/images, without Docker and without a registry:
 * `node tools/image.ts [--prefix=REGISTRY/TEAM/] [NAME]...`, all without a name. What did not change is left alone.
 * `node tools/image.ts --rootfs=FOLDER NAME` lays the files of one image into a folder instead: for a Dockerfile.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { withLock } from './build/lock.ts';
import { buildExecutables, type ExecutableName } from './build.ts';
import { type ImageReport, type ImageSpec, writeImage } from './image/archive.ts';
import { contentsOf, type ImageName } from './image/contents.ts';
import { fingerprintOf, writeTree } from './image/tree.ts';

/** Tells of one image that is there. */
type BuiltImage = {
  readonly name: ImageName;
  /** `tke-eni-agent:0.1.0`: what a manifest asks for. */
  readonly reference: string;
  /** Absolute path of the tar, which `ctr -n k8s.io images import` takes. */
  readonly path: string;
};

/** Options of `buildImages`. */
type ImageOptions = {
  /** Which; default all. */
  readonly names?: readonly ImageName[];
  /** Stands before the names: `registry.example.com/team/`. */
  readonly prefix?: string;
  /** Time of the image and its files, seconds since 1970; default 0. @see https://reproducible-builds.org/docs/source-date-epoch/ */
  readonly createdS?: number;
  /** Absolute; default dist/images. */
  readonly outDir?: string;
  readonly report?: (line: string) => void;
};

/** Builds executables and images where they are out of date. Safe to call from several processes at once. */
export async function buildImages(options: ImageOptions = {}): Promise<readonly BuiltImage[]> {
  const { names = IMAGES, outDir = OUT_DIR, report = () => {} } = options;
  const { binDir } = await buildExecutables(executablesOf(names), report);
  return withLock(join(ROOT, 'dist', '.cache', 'image-lock.db'), async () => {
    const images: BuiltImage[] = [];
    for (const name of names) {
      const spec = await specOf(name, binDir, options);
      const path = join(outDir, `${name}-${await readVersion()}.tar`);
      report(await makeImage(name, path, spec));
      images.push({ name, reference: spec.reference, path });
    }
    return images;
  });
}

const ROOT = join(import.meta.dirname, '..');
const OUT_DIR = join(ROOT, 'dist', 'images');
const IMAGES = [
  'tke-eni-agent',
  'tke-eni-ipamd',
  'tke-eni-ip-scheduler',
  'tke-eni-ip-webhook',
  'tke-cloud-controller-manager',
] as const satisfies readonly ImageName[];

/** Lists what has to be built for images. */
function executablesOf(names: readonly ImageName[]): readonly ExecutableName[] {
  return names.flatMap((name) => (name === 'tke-eni-agent' ? ['tke-route-eni', 'tke-eni', name] : [name]));
}

async function specOf(name: ImageName, binDir: string, options: ImageOptions): Promise<ImageSpec> {
  const { prefix = '', createdS = 0 } = options;
  const { title, ...contents } = contentsOf(name, { binDir });
  const version = await readVersion();
  const label = 'org.opencontainers.image';
  return {
    ...contents,
    reference: `${prefix}${name}:${version}`,
    createdS,
    labels: {
      [`${label}.title`]: title,
      [`${label}.version`]: version,
      [`${label}.revision`]: await revisionOf(join(binDir, name)),
      [`${label}.licenses`]: 'Apache-2.0',
    },
  };
}

/** Makes the image unless the last one was of the same files; returns a line about it. */
async function makeImage(name: string, path: string, spec: ImageSpec): Promise<string> {
  const stampPath = join(dirname(path), `.${name}.sha256`);
  const stamp = stampOf(spec);
  if (existsSync(path) && existsSync(stampPath) && readFileSync(stampPath, 'utf8') === stamp) {
    return `${path}: ${spec.reference}, unchanged`;
  }
  await rm(stampPath, { force: true });
  const made = await writeImage(path, spec);
  await writeFile(stampPath, stamp);
  return `${path}: ${spec.reference}, ${describe(made, statSync(path).size)}`;
}

function describe({ id, layers }: ImageReport, bytes: number): string {
  const mb = (count: number): string => (count / 1e6).toFixed(1);
  const parts = layers.map(({ name, bytes }) => `${name} ${mb(bytes)}`);
  return `${mb(bytes)} MB (${parts.join(', ')}), id ${id}`;
}

function stampOf(spec: ImageSpec): string {
  const hash = createHash('sha256').update(JSON.stringify({ ...spec, layers: fingerprintOf(spec.layers) }));
  const tool = join(import.meta.dirname, 'image');
  for (const file of readdirSync(tool).toSorted()) hash.update(readFileSync(join(tool, file)));
  return hash.digest('hex');
}

async function readVersion(): Promise<string> {
  const { version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string };
  return version;
}

/** Asks the executable itself, `0.1.0+abc1234`: a commit that does not touch its sources changes no image. */
async function revisionOf(executable: string): Promise<string> {
  const { stdout } = await promisify(execFile)(executable, ['--version']);
  return stdout.trim().split('+')[1] ?? '';
}

if (import.meta.main) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { prefix: { type: 'string' }, rootfs: { type: 'string' } },
  });
  const names = IMAGES.filter((name) => positionals.length === 0 || positionals.includes(name));
  const unknown = positionals.filter((name) => !IMAGES.some((image) => image === name));
  if (unknown.length > 0 || (values.rootfs !== undefined && names.length !== 1)) {
    console.error(`usage: node tools/image.ts [--prefix=REGISTRY/TEAM/ | --rootfs=FOLDER] [${IMAGES.join(' | ')}]`);
    process.exit(2);
  }
  if (values.prefix !== undefined && !/^([A-Za-z0-9.-]+(:\d+)?\/)?([a-z0-9._-]+\/)*$/.test(values.prefix)) {
    console.error(
      `--prefix=${values.prefix}: expected a registry and a path in lower case, with a slash at the end: registry.example.com/team/`,
    );
    process.exit(2);
  }
  const report = (line: string): void => console.error(line);
  const [first] = names;
  if (values.rootfs !== undefined && first !== undefined) {
    const { binDir } = await buildExecutables(executablesOf([first]), report);
    await mkdir(values.rootfs, { recursive: true });
    if (readdirSync(values.rootfs).length > 0) throw new Error(`${values.rootfs}: not empty`);
    await writeTree(values.rootfs, contentsOf(first, { binDir }).layers);
  } else {
    const createdS = Number(process.env['SOURCE_DATE_EPOCH'] ?? 0);
    await buildImages({ names, prefix: values.prefix ?? '', createdS, report });
  }
}
