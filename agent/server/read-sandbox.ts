import { INTERFACE_NAME_RULE, isInterfaceName } from '../../runtime/interface-name.ts';
import { CNI_CODE } from '../api/cni-code.ts';
import type { Sandbox } from '../api/messages.ts';
import { CniFailureError } from '../cni-failure.ts';

/** @see CNI SPEC, section "Parameters": CNI_CONTAINERID; the length leaves room in an IFLA_IFALIAS of 255 bytes. */
const CONTAINER_ID = /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,199}$/;

/**
 * Reads the sandbox of a request. The executable has looked at its environment already; this is for other callers, and
 * because these texts become names in the kernel.
 * @throws CniFailureError 4 naming every fault.
 */
export function readSandbox(sandbox: Sandbox | undefined, { needsNetns }: { readonly needsNetns: boolean }): Sandbox {
  const { containerId = '', ifName = '', netns = '', podNamespace = '', podName = '', podUid = '' } = sandbox ?? {};
  const faults: string[] = [];
  if (!CONTAINER_ID.test(containerId)) faults.push(`container id "${containerId}": expected letters, digits, "_.-"`);
  if (!isInterfaceName(ifName)) faults.push(`interface name "${ifName}": expected ${INTERFACE_NAME_RULE}`);
  if (needsNetns && !netns.startsWith('/')) faults.push(`netns "${netns}": expected an absolute path`);
  if (faults.length > 0) {
    throw new CniFailureError(
      CNI_CODE.invalidEnvironment,
      faults.join('; '),
      'see CNI_CONTAINERID, CNI_IFNAME, CNI_NETNS',
    );
  }
  return { containerId, ifName, netns, podNamespace, podName, podUid };
}
