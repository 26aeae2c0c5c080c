import { createHash } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type TarEntry, tarChunks } from '../../runtime/tar.ts';

/** One layer of an image: what it is called in the image's history, and its files. */
export type Layer = { readonly name: string; readonly entries: readonly TarEntry[] };

/** What a container image is to be. */
export type ImageSpec = {
  /** `tke-eni-agent:0.1.0`, or with a registry before it. */
  readonly reference: string;
  /** From below to above; the ones that change least come first. */
  readonly layers: readonly Layer[];
  readonly entrypoint: readonly string[];
  readonly env: readonly string[];
  /** `UID:GID`; absent: root. */
  readonly user?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Time of the image and of all its files, seconds since 1970; default 0. */
  readonly createdS?: number;
};

/** Tells what was written. */
export type ImageReport = {
  /** Digest of the image's configuration: the image's id. */
  readonly id: string;
  readonly layers: readonly { readonly name: string; readonly digest: string; readonly bytes: number }[];
};

/**
 * Writes an image as one tar that is both an OCI image layout and a docker-archive, so that `ctr images import`, `docker
 * load`, `podman load` and skopeo take it. No Docker and no registry have a part in it; equal input gives equal bytes.
 * Atomic: the file is there whole or not at all.
 * @see https://github.com/opencontainers/image-spec/blob/main/image-layout.md
 */
export async function writeImage(path: string, spec: ImageSpec): Promise<ImageReport> {
  const { entries, report } = layOut(spec);
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    await using file = await open(temporary, 'w');
    for (const chunk of tarChunks(entries, spec.createdS)) await file.write(chunk);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await rename(temporary, path);
  return report;
}

/** Makes in memory what `writeImage` writes; for small images. */
export function imageBytes(spec: ImageSpec): Buffer {
  return Buffer.concat([...tarChunks(layOut(spec).entries, spec.createdS)]);
}

const MEDIA = 'application/vnd.oci.image';

type Blob = { readonly digest: string; readonly size: number; readonly entry: TarEntry };

function layOut(spec: ImageSpec): { readonly entries: readonly TarEntry[]; readonly report: ImageReport } {
  const layers = spec.layers.map((layer) => archiveBlob(layer.entries, spec.createdS ?? 0));
  const config = jsonBlob(configOf(spec, layers));
  const manifest = jsonBlob({
    schemaVersion: 2,
    mediaType: `${MEDIA}.manifest.v1+json`,
    config: descriptor(config, `${MEDIA}.config.v1+json`),
    layers: layers.map((layer) => descriptor(layer, `${MEDIA}.layer.v1.tar`)),
  });
  const index = {
    schemaVersion: 2,
    mediaType: `${MEDIA}.index.v1+json`,
    manifests: [
      {
        ...descriptor(manifest, `${MEDIA}.manifest.v1+json`),
        platform: { architecture: architecture(), os: 'linux' },
        annotations: {
          'io.containerd.image.name': fullReference(spec.reference),
          'org.opencontainers.image.ref.name': tagOf(spec.reference),
        },
      },
    ],
  };
  const dockerManifest = [
    { Config: config.entry.path, RepoTags: [spec.reference], Layers: layers.map(({ entry }) => entry.path) },
  ];
  const blobs = new Map([...layers, config, manifest].map((blob) => [blob.digest, blob.entry]));
  return {
    entries: [
      { kind: 'folder', path: 'blobs' },
      { kind: 'folder', path: BLOBS },
      ...[...blobs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry),
      { kind: 'file', path: 'index.json', content: json(index) },
      { kind: 'file', path: 'manifest.json', content: json(dockerManifest) },
      { kind: 'file', path: 'oci-layout', content: json({ imageLayoutVersion: '1.0.0' }) },
    ],
    report: {
      id: `sha256:${config.digest}`,
      layers: layers.map(({ digest, size }, index) => ({
        name: spec.layers[index]?.name ?? '',
        digest: `sha256:${digest}`,
        bytes: size,
      })),
    },
  };
}

function configOf(spec: ImageSpec, layers: readonly Blob[]): unknown {
  const created = new Date((spec.createdS ?? 0) * 1000).toISOString().replace('.000Z', 'Z');
  return {
    created,
    architecture: architecture(),
    os: 'linux',
    config: {
      ...(spec.user !== undefined && { User: spec.user }),
      Env: spec.env,
      Entrypoint: spec.entrypoint,
      WorkingDir: '/',
      ...(spec.labels !== undefined && { Labels: spec.labels }),
    },
    rootfs: { type: 'layers', diff_ids: layers.map(({ digest }) => `sha256:${digest}`) },
    history: spec.layers.map(({ name }) => ({ created, created_by: name })),
  };
}

const BLOBS = 'blobs/sha256';

function archiveBlob(entries: readonly TarEntry[], mtimeS: number): Blob {
  const hash = createHash('sha256');
  let size = 0;
  for (const chunk of tarChunks(entries, mtimeS)) {
    hash.update(chunk);
    size += chunk.length;
  }
  const digest = hash.digest('hex');
  return { digest, size, entry: { kind: 'archive', path: `${BLOBS}/${digest}`, entries } };
}

function jsonBlob(value: unknown): Blob {
  const content = json(value);
  const digest = createHash('sha256').update(content).digest('hex');
  return { digest, size: content.length, entry: { kind: 'file', path: `${BLOBS}/${digest}`, content } };
}

function descriptor({ digest, size }: Blob, mediaType: string): object {
  return { mediaType, digest: `sha256:${digest}`, size };
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}

/** Go's names, which images use. */
function architecture(): string {
  return process.arch === 'x64' ? 'amd64' : process.arch;
}

/**
 * Writes a reference out, as containerd keeps it and kubelet asks for it: `a:1` -> `docker.io/library/a:1`.
 * @see https://pkg.go.dev/github.com/distribution/reference#ParseNormalizedNamed
 */
export function fullReference(reference: string): string {
  const [first = '', ...rest] = reference.split('/');
  if (rest.length === 0) return `docker.io/library/${reference}`;
  return /[.:]/.test(first) || first === 'localhost' ? reference : `docker.io/${reference}`;
}

function tagOf(reference: string): string {
  return /:([^/:]+)$/.exec(reference)?.[1] ?? 'latest';
}
