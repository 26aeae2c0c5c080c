import { EIP_CLAIM_KIND } from '../crd/eip-claim.ts';
import type { FieldOwner, FieldTable } from '../crd/field.ts';
import { API_GROUP } from '../crd/names.ts';
import { NODE_ENI_CONFIG_KIND } from '../crd/node-eni-config-fields.ts';
import type { ResourceKind } from '../crd/resource-kind.ts';
import { VPC_ENI_KIND } from '../crd/vpc-eni.ts';
import { VPC_IP_KIND } from '../crd/vpc-ip.ts';
import { VPC_IP_CLAIM_KIND } from '../crd/vpc-ip-claim.ts';

/**
 * The kinds whose objects ipamd makes, and what people do instead of a change of the status. A StaticIPConfig and an
 * UnderlayIP are of people: `kubectl replace` with their manifest, which has no status, is a write that they may make.
 */
const GUARDED: readonly (readonly [kind: ResourceKind, instead: string])[] = [
  [
    NODE_ENI_CONFIG_KIND,
    'what a node is to have is in its spec (maxRouteENI, routeENIIPMinWarmTarget, subnetIDs, securityGroups) and in annotations; what differs from the cloud ipamd finds and repairs by itself',
  ],
  [VPC_IP_CLAIM_KIND, 'kubectl delete vipc gives the address up; what a Pod asks for is in its annotations'],
  [VPC_IP_KIND, 'kubectl delete vipc gives a kept address up; the record of another Pod goes with the Pod'],
  [
    VPC_ENI_KIND,
    'its security groups are in spec.securityGroups; kubectl delete vipc gives the ENI of a kept address up',
  ],
  [EIP_CLAIM_KIND, 'kubectl delete eipc gives the EIP up; what a Pod asks for is in its annotations'],
];

const NAME = 'tke-eni-only-ipamd-writes-status';
const FOLDER = 'conf/kubernetes/components/only-ipamd-writes-status';

/** The admission policy that is made from the field tables: path and how to render it. */
export const STATUS_POLICY_FILES: Readonly<Record<string, () => string>> = {
  [`${FOLDER}/policy.yaml`]: renderStatusPolicy,
};

/**
 * Lists the fields of a kind's status that ipamd alone writes.
 * @throws Error naming a field inside of one that another program writes: the policy compares whole fields
 */
export function fieldsOfIpamd({ kind, fields }: ResourceKind): readonly string[] {
  const status = fields['status']?.value.fields ?? {};
  return Object.entries(status).flatMap(([name, { owner, value }]) => {
    if (owner !== 'ipamd') return [];
    const others = ownersIn(value.fields ?? {}).filter((one) => one !== 'ipamd');
    if (others.length > 0) throw new Error(`${kind}: inside of status.${name} is a field of ${others.join(', ')}`);
    return [name];
  });
}

function ownersIn(fields: FieldTable): readonly FieldOwner[] {
  return Object.values(fields).flatMap(({ owner, value }) => [
    ...(owner === undefined ? [] : [owner]),
    ...ownersIn(value.fields ?? {}),
  ]);
}

function renderStatusPolicy(): string {
  const fields = GUARDED.map(([kind]) => `'${kind.plural}': [${fieldsOfIpamd(kind).map(quoted).join(', ')}]`);
  const instead = GUARDED.map(([kind, text]) => `'${kind.plural}': ${quoted(text)}`);
  const resources = GUARDED.flatMap(([{ plural }]) => [plural, `${plural}/status`]);
  return `# Made from crd/ by tools/gen-status-policy.ts; run: make gen
# The status is an ordinary part of these objects: whoever may change their spec may change the status, and what is there decides
# which address is whose. ipamd undoes such an edit within a second; this refuses it, and tells its author what to do instead.
# A create goes through: a backup is restored with it, and ipamd compares a new object with the cloud. So does a delete.
# To change a status all the same, and back: conf/README.md, "Component only-ipamd-writes-status".
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: ${NAME}
  labels:
    app.kubernetes.io/name: tke-eni
    app.kubernetes.io/component: ipamd
spec:
  # An expression that cannot be evaluated refuses, too.
  failurePolicy: Fail
  matchConstraints:
    # Also through an older or newer version of the same resource.
    matchPolicy: Equivalent
    resourceRules:
      - apiGroups: [${API_GROUP}]
        apiVersions: ["*"]
        # The definitions have no subresource status; those of somebody else may have.
        resources:
${resources.map((one) => `          - ${one}\n`).join('')}        operations: [UPDATE]
  matchConditions:
    - name: is-not-ipamd
      expression: request.userInfo.username != 'system:serviceaccount:kube-system:tke-eni-ipamd'
  variables:
    # Of the status, by resource: what ipamd alone writes.
    - name: fields
      expression: >-
        {
${folded(fields)}
        }[request.resource.resource]
    - name: instead
      expression: >-
        {
${folded(instead)}
        }[request.resource.resource]
    - name: before
      expression: 'has(oldObject.status) ? dyn(oldObject.status) : dyn({})'
    - name: after
      expression: 'has(object.status) ? dyn(object.status) : dyn({})'
    - name: changed
      expression: >-
        variables.fields.filter(field, field in variables.before ?
        !(field in variables.after) || variables.before[field] != variables.after[field] : field in variables.after)
  validations:
    - expression: size(variables.changed) == 0
      reason: Forbidden
      messageExpression: >-
        'tke-eni-ipamd alone writes status.' + variables.changed.join(', status.') + ' of ' + request.resource.resource + ' '
        + request.name + '; ' + variables.instead
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ${NAME}
  labels:
    app.kubernetes.io/name: tke-eni
    app.kubernetes.io/component: ipamd
spec:
  policyName: ${NAME}
  validationActions: [Deny, Audit]
`;
}

/** Writes a text as CEL does. @throws Error for one that would need escapes */
function quoted(text: string): string {
  if (/['\\\n]/.test(text)) throw new Error(`CEL: ${text}`);
  return `'${text}'`;
}

const WIDTH = 120;
const INDENT = ' '.repeat(8);

/** Writes the entries of a map, wrapped at spaces: a folded scalar joins its lines with one. */
function folded(entries: readonly string[]): string {
  return entries.map((entry, index) => wrapped(`${entry}${index < entries.length - 1 ? ',' : ''}`)).join('\n');
}

function wrapped(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || `${INDENT}${last} ${word}`.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines.map((line) => `${INDENT}${line}`).join('\n');
}
