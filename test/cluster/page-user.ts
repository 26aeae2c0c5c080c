import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { childEnv } from '../../sim/support/child-env.ts';
import { run } from '../../sim/support/run.ts';
import { makeChart } from '../../tools/chart.ts';
import { CLOUD_ENDPOINT, CLUSTER_ID } from './deploy.ts';
import type { RealCluster } from './real-cluster.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Helm's executable: HELM, or the one of PATH. */
export const HELM = process.env['HELM'] ?? 'helm';
/** Copy of the example overlay, relative to the place of the user. */
export const OVERLAY = 'conf/kubernetes/overlays/mine';
/** How long one command of a page may take, milliseconds. */
export const COMMAND_MS = 240_000;

/**
 * Copies what commands of the pages copy and change, `conf/` of a checkout and the chart, as a new checkout has it: without the
 * overlay that its user may have made.
 */
export function copyRepository(place: string, checkout = ROOT): void {
  cpSync(join(checkout, 'conf'), join(place, 'conf'), { recursive: true });
  rmSync(join(place, OVERLAY), { recursive: true, force: true });
  makeChart(join(place, 'dist/helm/tke-eni'));
}

/** Reads a page of `docs/`. */
export function readPage(name: string): string {
  return readFileSync(join(ROOT, 'docs', name), 'utf8');
}

/** Somebody at an administrator's machine who runs the commands of a page, in a copy of the repository as far as they need one. */
export class PageUser {
  readonly #cluster: RealCluster;
  /** Where the commands are run. */
  readonly place: string;

  constructor(cluster: RealCluster) {
    this.#cluster = cluster;
    this.place = join(cluster.dir, 'user');
    mkdirSync(this.place, { recursive: true });
    copyRepository(this.place);
  }

  /** Runs commands of a page in one shell that ends at the first failure; its placeholders are filled in. @throws RunError */
  async sh(script: string): Promise<string> {
    const { cloud, assets, kubeconfig } = this.#cluster;
    const { secretId, secretKey } = cloud.key;
    const filled = script
      .replace('secretId=ID', `secretId=${secretId}`)
      .replace('secretKey=KEY', `secretKey=${secretKey}`)
      .replace('cls-a1b2c3d4', CLUSTER_ID)
      .replace('subnet-a1b2c3d4,subnet-e5f6a7b8', cloud.podSubnetIds.join(','))
      // Images were imported by their names alone.
      .replace('--set image.registry=registry.example.com/tke-eni', '');
    const env = childEnv();
    // What the shell has started ends with it: a deletion that waits for a finalizer would wait forever.
    return run(['timeout', String(COMMAND_MS / 1_000), 'sh', '-ec', filled], {
      cwd: this.place,
      env: { ...env, HOME: this.place, KUBECONFIG: kubeconfig, PATH: `${assets}:${dirname(HELM)}:${env['PATH']}` },
      timeoutMs: COMMAND_MS + 10_000,
    });
  }

  /** Writes a file beside the copy of the repository. */
  write(name: string, text: string): void {
    writeFileSync(join(this.place, name), text);
  }

  /** Fills in what is marked REPLACE in the overlay, and what a test cloud needs. */
  fillOverlay(): void {
    const path = join(this.place, OVERLAY, 'kustomization.yaml');
    const { cloud } = this.#cluster;
    const filled = readFileSync(path, 'utf8')
      .replaceAll(/newName: registry\.example\.com\/tke-eni\//g, 'newName: ')
      .replace('TKE_ENI_CLUSTERID=cls-a1b2c3d4', `TKE_ENI_CLUSTERID=${CLUSTER_ID}`)
      .replace(
        'TKE_ENI_ENDPOINT=*.internal.tencentcloudapi.com',
        `TKE_ENI_ENDPOINT=${CLOUD_ENDPOINT}\n      - TKE_ENI_PROTOCOL=http`,
      )
      .replaceAll(/# (- TKE_ENI_ENABLE_(?:STATIC_IP|DIRECT_ENI)=true)/g, '$1')
      .replace('SUBNET_ID: subnet-a1b2c3d4:subnet-e5f6a7b8', `SUBNET_ID: ${cloud.podSubnetIds.join(':')}`)
      .replace('VPC_ID: vpc-a1b2c3d4', `VPC_ID: ${cloud.vpcId}`)
      // Two minutes that nobody has to wait for here.
      .replace(
        '\npatches:',
        '\n  - name: tke-eni-agent-settings\n    namespace: kube-system\n    behavior: merge\n    literals: [TKE_ENI_IP_COOLDOWN=2s]\npatches:',
      );
    writeFileSync(path, filled);
  }

  /** Options of `helm` that a test cloud needs. */
  helmSettings(): string {
    const { cloud } = this.#cluster;
    return ` --set endpoint=${CLOUD_ENDPOINT} --set ipamd.settings.protocol=http --set vpcId=${cloud.vpcId}`;
  }
}
