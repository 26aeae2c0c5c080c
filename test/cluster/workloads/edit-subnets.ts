import { childEnv } from '../../../sim/support/child-env.ts';
import type { RealCluster } from '../real-cluster.ts';

/** Writes subnets and their zones into ipamd's ConfigMap with the command that users are shown. @throws Error with its answer */
export async function editSubnets(
  cluster: RealCluster,
  subnets: readonly { readonly subnetId: string; readonly zone: string }[],
): Promise<void> {
  const ids = subnets.map(({ subnetId }) => subnetId).join(':');
  const zones = subnets.map(({ zone }) => zone).join(':');
  const edit = [
    `s/^  TKE_ENI_IPAMD_SUBNET_ID: .*/  TKE_ENI_IPAMD_SUBNET_ID: ${ids}/`,
    '/^  TKE_ENI_IPAMD_ZONE: /d',
    `/^  TKE_ENI_IPAMD_SUBNET_ID: /a \\  TKE_ENI_IPAMD_ZONE: ${zones}`,
  ];
  const editor = `sed -i ${edit.map((one) => `-e '${one}'`).join(' ')}`;
  const { code, stdout, stderr } = await cluster.tryKubectl(['edit', 'cm', '-n', 'kube-system', 'tke-eni-ipamd'], {
    env: { ...childEnv(), KUBE_EDITOR: editor },
  });
  if (code !== 0 || !stdout.includes('edited')) throw new Error(`kubectl edit: ${stdout}${stderr}`);
}
