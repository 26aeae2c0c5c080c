import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { JsonObject } from '../../sim/kube-api/object.ts';
import { blockOf } from '../cluster/doc-commands.ts';
import { at } from '../kube-api/contract/contract-case.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { listOf } from './base-scene.ts';
import { KUBERNETES_FOLDER, objectsOf, readKustomization, strings } from './read-manifests.ts';

/** Renders a kustomization as people do. @throws Error with what kubectl said */
export function render(folder: string, kubectl = 'kubectl'): readonly JsonObject[] {
  return objectsOf(execFileSync(kubectl, ['kustomize', folder], { encoding: 'utf8' }));
}

/** The overlays that people start from, by the oldest Kubernetes that takes them. */
export type KubernetesVersion = '1.27' | '1.30';

type ExampleSpec = {
  readonly version?: KubernetesVersion;
  readonly kubectl?: string;
  /** Patches beside those of the example, as YAML. */
  readonly patches?: readonly string[];
  /** With overlays/example-hybrid over it. */
  readonly hybrid?: boolean;
};

/** The patch of docs/static-ip.md that gives API servers the authority of the webhook's certificate, PEM. */
export function authorityPatch(authority: string): string {
  const page = readFileSync(new URL('../../docs/static-ip.md', import.meta.url), 'utf8');
  const kustomization = objectsOf(blockOf(page, 'yaml', 'The webhook'))[0];
  const patch = String(at(kustomization, 'patches', 0, 'patch'));
  if (!patch.includes('LS0t…')) throw new Error(`no place for the authority: ${patch}`);
  return patch.replace('LS0t…', Buffer.from(authority).toString('base64'));
}

/**
 * Renders the example as a copy of it elsewhere would be: for the given Kubernetes, with components of
 * conf/kubernetes/components and with patches besides. @throws Error with what kubectl said
 */
export function renderExample(
  components: readonly string[],
  { version = '1.30', kubectl = 'kubectl', patches = [], hybrid = false }: ExampleSpec = {},
): readonly JsonObject[] {
  const folder = createTempDir('overlay');
  const copy = folder.join('example');
  const to = (path: string) => relative(copy, join(KUBERNETES_FOLDER, path));
  const example = readKustomization(join(KUBERNETES_FOLDER, 'overlays/example'));
  const kustomization = {
    ...example,
    resources: strings(example['resources']).map((path) =>
      to(join('overlays/example', path.replace('kubernetes-1.30', `kubernetes-${version}`))),
    ),
    components: components.map((name) => to(`components/${name}`)),
    patches: [...listOf(example['patches']), ...patches.map((patch) => ({ patch }))],
  };
  try {
    mkdirSync(copy);
    // JSON is YAML.
    writeFileSync(join(copy, 'kustomization.yaml'), JSON.stringify(kustomization));
    if (!hybrid) return render(copy, kubectl);
    cpSync(join(KUBERNETES_FOLDER, 'overlays/example-hybrid'), folder.join('example-hybrid'), { recursive: true });
    return render(folder.join('example-hybrid'), kubectl);
  } finally {
    folder.close();
  }
}
