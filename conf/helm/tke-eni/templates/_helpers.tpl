{{/* The image of a component. Takes a list: the root, the component's name. */}}
{{- define "tke-eni.image" -}}
{{- $root := index . 0 -}}
{{- with $root.Values.image.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion -}}
{{- end -}}

{{/*
Ends with an error where the chart is what the repository has of it: what is written by hand, without what is made of the manifests.
*/}}
{{- define "tke-eni.refuse-unmade-chart" -}}
{{- if not (.Files.Get "files/alerts.yaml") -}}
{{- fail "conf/helm/tke-eni lacks the files that are made of the manifests: run `make chart` in the repository, then give helm dist/helm/tke-eni instead. docs/install.md" -}}
{{- end -}}
{{- end -}}

{{/* The name of the ConfigMap of a component's settings: with other settings it is another one. Takes a list: the component's name, the settings. */}}
{{- define "tke-eni.settings-name" -}}
{{- index . 0 }}-settings-{{ index . 1 | sha256sum | trunc 10 -}}
{{- end -}}

{{/*
The ConfigMap of a component's settings, and the last three that it had before: Pods that a rollout has not reached name them, and Helm
deletes what a chart has no longer. They are looked for only where a server is asked (not by helm template). Takes a list: the root, the
component's name, the settings.
*/}}
{{- define "tke-eni.settings-of" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $name := include "tke-eni.settings-name" (rest .) -}}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  namespace: {{ $root.Release.Namespace }}
immutable: true
data:
  {{- index . 2 | nindent 2 }}
{{- $before := dict }}
{{- range (lookup "v1" "ConfigMap" $root.Release.Namespace "").items }}
{{- $isOurs := eq (dig "annotations" "meta.helm.sh/release-name" "" .metadata) $root.Release.Name }}
{{- if and $isOurs (ne .metadata.name $name) (regexMatch (printf "^%s-settings(-[0-9a-f]{10})?$" $component) .metadata.name) }}
{{- $_ := set $before (printf "%s %s" .metadata.creationTimestamp .metadata.name) . }}
{{- end }}
{{- end }}
{{- range $index, $key := keys $before | sortAlpha | reverse }}
{{- if lt $index 3 }}
{{- with get $before $key }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .metadata.name }}
  namespace: {{ $root.Release.Namespace }}
{{- if .immutable }}
immutable: true
{{- end }}
data:
  {{- range $variable, $value := .data }}
  {{ $variable }}: {{ $value | quote }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Settings as the variables that agent and ipamd read: log-level becomes TKE_ENI_LOG_LEVEL. */}}
{{- define "tke-eni.settings" -}}
{{- range $flag, $value := . }}
TKE_ENI_{{ $flag | upper | replace "-" "_" }}: {{ if kindIs "slice" $value }}{{ join "," $value | quote }}{{ else if kindIs "string" $value }}{{ $value | quote }}{{ else }}{{ toJson $value | quote }}{{ end }}
{{- end }}
{{- end -}}

{{/*
What a switch comes to: true, or empty. auto: whether the server is Kubernetes 1.30 or newer, which has appArmorProfile, admission
policies, and the node in a Pod's token. Takes a list: the root, the value.
*/}}
{{- define "tke-eni.is-on" -}}
{{- $value := toString (index . 1) -}}
{{- if eq $value "auto" }}{{ if semverCompare ">=1.30.0-0" (index . 0).Capabilities.KubeVersion.Version }}true{{ end }}
{{- else if eq $value "true" }}true{{ end -}}
{{- end -}}

{{/* Settings of the agent: those of the map, and those of network. */}}
{{- define "tke-eni.agent-settings" -}}
{{- include "tke-eni.settings" (merge (include "tke-eni.default-network" . | fromYaml) .Values.agent.settings) -}}
{{- end -}}

{{/* Whether the extender makes its certificates itself: true, or empty where values name a Secret of yours. */}}
{{- define "tke-eni.scheduler-makes-certificates" -}}
{{- if and .Values.scheduler.enabled (not .Values.scheduler.tlsSecret) }}true{{ end -}}
{{- end -}}

{{/* Settings of the extender: those of the map, and with certificates of its own the address of its Service. */}}
{{- define "tke-eni.scheduler-settings" -}}
{{- $settings := merge (dict) .Values.scheduler.settings -}}
{{- if include "tke-eni.scheduler-makes-certificates" . -}}
{{- with .Values.scheduler.clusterIP }}{{ $_ := merge $settings (dict "tls-names" .) }}{{ end -}}
{{- end -}}
{{- include "tke-eni.settings" $settings -}}
{{- end -}}

{{/*
Ends with an error where the extender would make certificates while kube-scheduler may still name those of the Secret that the chart took
before. It is looked for only where a server is asked (not by helm template).
*/}}
{{- define "tke-eni.refuse-other-scheduler-certificates" -}}
{{- if include "tke-eni.scheduler-makes-certificates" . -}}
{{- if and (lookup "v1" "Secret" .Release.Namespace "tke-eni-ip-scheduler-tls") (not (lookup "v1" "Secret" .Release.Namespace "tke-eni-ip-scheduler-certificates")) -}}
{{- fail (printf "scheduler.tlsSecret: namespace %s has the Secret tke-eni-ip-scheduler-tls, whose certificates kube-scheduler knows: set scheduler.tlsSecret to tke-eni-ip-scheduler-tls to go on with it, or delete it, and give kube-scheduler the configuration that the extender prints. docs/upgrade.md" .Release.Namespace) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Settings of the webhook: those of the map, and those of network. */}}
{{- define "tke-eni.webhook-settings" -}}
{{- include "tke-eni.settings" (merge (include "tke-eni.default-network" . | fromYaml) (include "tke-eni.gate-settings" . | fromYaml) .Values.webhook.settings) -}}
{{- end -}}

{{/* Whether the cloud controller manager makes load balancers: true, or empty. */}}
{{- define "tke-eni.load-balancers" -}}
{{- $manager := .Values.cloudControllerManager -}}
{{- if and $manager.enabled (eq (toString (get $manager.settings "load-balancers")) "clb") }}true{{ end -}}
{{- end -}}

{{/* Whether the cloud controller manager serves Ingresses: true, or empty. */}}
{{- define "tke-eni.ingress" -}}
{{- if include "tke-eni.load-balancers" . -}}
{{- if eq (toString (get .Values.cloudControllerManager.settings "ingress")) "clb" }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* Whether the webhook has its entry of load balancers: true, or empty. */}}
{{- define "tke-eni.load-balancer-gate" -}}
{{- if .Values.webhook.enabled -}}
{{- $value := toString .Values.webhook.loadBalancers.enabled -}}
{{- if eq $value "auto" }}{{ include "tke-eni.load-balancers" . }}
{{- else if eq $value "true" }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/* What webhook.loadBalancers says to the webhook, by its flags, as YAML; nothing without that entry. */}}
{{- define "tke-eni.gate-settings" -}}
{{- if include "tke-eni.load-balancer-gate" . -}}
readiness-gates: true
pre-stop-sleep: {{ include "tke-eni.is-on" (list . .Values.webhook.loadBalancers.preStopSleep) | default "false" }}
{{- with get .Values.cloudControllerManager.settings "load-balancer-class" }}
load-balancer-class: {{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Settings of ipamd: those of the map, those of network, and those that every cluster has. */}}
{{- define "tke-eni.ipamd-settings" -}}
{{- $settings := merge (dict "clusterid" .Values.clusterId) (include "tke-eni.pod-cidr-settings" . | fromYaml) .Values.ipamd.settings -}}
{{- with .Values.region }}{{ $_ := set $settings "region" . }}{{ end -}}
{{- with .Values.endpoint }}{{ $_ := set $settings "endpoint" . }}{{ end -}}
{{- include "tke-eni.settings" $settings -}}
{{- end -}}

{{/* Settings of the cloud controller manager: those of the map, and where the cloud is. */}}
{{- define "tke-eni.cloud-controller-manager-settings" -}}
{{- $settings := merge (dict) .Values.cloudControllerManager.settings (include "tke-eni.ccm-route-settings" . | fromYaml) -}}
{{- with .Values.region }}{{ $_ := set $settings "region" . }}{{ end -}}
{{- with .Values.endpoint }}{{ $_ := set $settings "endpoint" . }}{{ end -}}
{{- with .Values.vpcId }}{{ $_ := merge $settings (dict "vpc-id" .) }}{{ end -}}
{{- if include "tke-eni.load-balancers" . }}{{ $_ := merge $settings (dict "clusterid" .Values.clusterId) }}{{ end -}}
{{- include "tke-eni.settings" $settings -}}
{{- end -}}

{{/* What network says to the cloud controller manager, by its flags, as YAML; nothing unless it keeps the routes. A setting of the map wins. */}}
{{- define "tke-eni.ccm-route-settings" -}}
{{- if and (ne .Values.network.mode "vpc-cni") (eq .Values.network.routes "ccm") -}}
routes: global
clusterid: {{ .Values.clusterId }}
{{- with .Values.network.clusterCidrs }}
cluster-cidr: {{ toJson . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/*
Ends with an error where a cloud controller manager of another make has the ClusterRole whose name is everybody's. It is looked for only
where a server is asked (not by helm template).
*/}}
{{- define "tke-eni.refuse-second-controller-manager" -}}
{{- with lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "cloud-controller-manager" -}}
{{- if ne (dig "metadata" "labels" "app.kubernetes.io/name" "" .) "tke-eni" -}}
{{- fail "cloudControllerManager.enabled: the ClusterRole cloud-controller-manager is there already, of a cloud controller manager of another make: two of them work against each other. Remove that one first, or set cloudControllerManager.enabled to false. docs/cloud-controller-manager.md" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The flag that agent, webhook and ipamd must have alike, as YAML; nothing with network.mode vpc-cni. */}}
{{- define "tke-eni.default-network" -}}
{{- if ne .Values.network.mode "vpc-cni" }}default-network: {{ .Values.network.default }}{{ end -}}
{{- end -}}

{{/* What network says to ipamd, by its flags, as YAML; nothing with network.mode vpc-cni. Numbers that are 0 are left to the flag. */}}
{{- define "tke-eni.pod-cidr-settings" -}}
{{- if ne .Values.network.mode "vpc-cni" -}}
{{ include "tke-eni.default-network" . }}
allocate-node-cidrs: {{ .Values.network.allocateNodeCidrs }}
gr-routes: {{ .Values.network.routes }}
{{- with .Values.network.clusterCidrs }}
cluster-cidr: {{ toJson . }}
{{- end }}
{{- with .Values.network.serviceCidr }}
service-cluster-ip-range: {{ . }}
{{- end }}
{{- with .Values.network.maxPodsPerNode }}
max-pods-per-node: {{ . }}
{{- end }}
{{- with .Values.network.nodeMaskSize }}
node-cidr-mask-size: {{ . }}
{{- end }}
{{- end -}}
{{- end -}}

{{/* Ends with one error that names all values of network that do not go together, or with what a map of settings says besides. */}}
{{- define "tke-eni.refuse-network" -}}
{{- $network := .Values.network -}}
{{- $mode := $network.mode -}}
{{- $faults := list -}}
{{- if eq $mode "vpc-cni" -}}
{{- range $name := list "clusterCidrs" "serviceCidr" "maxPodsPerNode" "nodeMaskSize" -}}
{{- with get $network $name }}{{ $faults = append $faults (printf "network.%s: expected nothing, as network.mode is vpc-cni, got %s: set network.mode to gr or hybrid, or take it away" $name (toJson .)) }}{{ end -}}
{{- end -}}
{{- else -}}
{{- if and (eq $mode "gr") .Values.subnets -}}
{{- $faults = append $faults (printf "subnets: expected none, as network.mode gr has no ENIs, got %s: set network.mode to hybrid, or take them away" (toJson .Values.subnets)) -}}
{{- end -}}
{{- if and (eq $mode "gr") (ne $network.default "tke-bridge") -}}
{{- $faults = append $faults (printf "network.default: expected tke-bridge, as network.mode gr has no ENIs, got %s" $network.default) -}}
{{- end -}}
{{- if and (eq $network.routes "ccm") (not .Values.cloudControllerManager.enabled) -}}
{{- $faults = append $faults "network.routes: expected ipamd or none, as cloudControllerManager.enabled is false, got ccm" -}}
{{- end -}}
{{- if and (or $network.allocateNodeCidrs (ne $network.routes "none")) (not $network.clusterCidrs) -}}
{{- $faults = append $faults (printf "network.clusterCidrs: expected the networks of podCIDRs, such as [192.168.0.0/20], as network.mode is %s, got none" $mode) -}}
{{- end -}}
{{- if and $network.allocateNodeCidrs (not $network.serviceCidr) -}}
{{- $faults = append $faults "network.serviceCidr: expected the range of Services, as kube-apiserver has it in --service-cluster-ip-range, got none: a node could get its addresses" -}}
{{- end -}}
{{- if and $network.maxPodsPerNode $network.nodeMaskSize -}}
{{- $faults = append $faults "network.nodeMaskSize: expected 0, as network.maxPodsPerNode says how large a block is: set one of the two" -}}
{{- end -}}
{{- $settings := dict "ipamd" (include "tke-eni.pod-cidr-settings" . | fromYaml) "agent" (include "tke-eni.default-network" . | fromYaml) "webhook" (include "tke-eni.default-network" . | fromYaml) -}}
{{- range $component, $taken := $settings -}}
{{- range $flag, $ignored := (get $.Values $component).settings -}}
{{- if hasKey $taken $flag }}{{ $faults = append $faults (printf "%s.settings.%s: expected nothing, as network says it with network.mode %s: take it away" $component $flag $mode) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $faults }}{{ fail (printf "%s. docs/hybrid.md" (join "; " $faults)) }}{{ end -}}
{{- end -}}

{{/* Namespaces whose Pods must come up without the webhook: the cluster's own, and ours. */}}
{{- define "tke-eni.system-namespaces" -}}
[kube-system{{ if ne .Release.Namespace "kube-system" }}, {{ .Release.Namespace }}{{ end }}]
{{- end -}}

{{/* A file for the Prometheus operator as it is, in the release's namespace and with the labels of values. Takes a list: the root, the path. */}}
{{- define "tke-eni.monitoring-file" -}}
{{- $root := index . 0 -}}
{{- $labels := "labels: {" -}}
{{- range $name, $value := $root.Values.monitoring.labels }}{{ $labels = printf "%s%s: %s, " $labels $name ($value | quote) }}{{ end -}}
{{- $root.Files.Get (index . 1)
  | replace "namespace: kube-system" (printf "namespace: %s" $root.Release.Namespace)
  | replace "labels: {app.kubernetes.io/name: tke-eni" (printf "%sapp.kubernetes.io/name: tke-eni" $labels) -}}
{{- end -}}

{{/* Whether the webhook makes its certificates itself: true, or empty where values have an authority or name what sets it. */}}
{{- define "tke-eni.webhook-makes-certificates" -}}
{{- $webhook := .Values.webhook -}}
{{- if and $webhook.enabled (not $webhook.caBundle) -}}
{{- $isInjected := false -}}
{{- range $name, $value := $webhook.annotations }}{{ if regexMatch "/inject-(ca|apiserver-ca)" $name }}{{ $isInjected = true }}{{ end }}{{ end -}}
{{- if not $isInjected }}true{{ end -}}
{{- end -}}
{{- end -}}

{{/*
Ends with an error where the webhook would refuse every Pod at once: its certificate is yours to make, and is not there. The Secret is
looked for only where a server is asked (not by helm template) and the certificate is made by hand; cert-manager may make it later. The
account `default` is in every namespace: without it the answer is none.
*/}}
{{- define "tke-eni.refuse-webhook-without-authority" -}}
{{- $webhook := .Values.webhook -}}
{{- if and $webhook.caBundle (lookup "v1" "ServiceAccount" .Release.Namespace "default") -}}
{{- if not (lookup "v1" "Secret" .Release.Namespace $webhook.tlsSecret) -}}
{{- fail (printf "webhook.tlsSecret: expected a Secret of type kubernetes.io/tls, as webhook.caBundle is given, but namespace %s has no Secret %s: without its certificate the webhook does not start, and API servers refuse every Pod (webhook.failurePolicy Fail), or create it without its request (Ignore). Make it first, or take webhook.caBundle away: then the webhook makes its certificates. docs/static-ip.md, section \"The webhook\"" .Release.Namespace $webhook.tlsSecret) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A number, or a time in milliseconds, of the text of a setting. */}}
{{- define "tke-eni.number" -}}
{{- if regexMatch "^[0-9]+$" . -}}
{{- int64 (regexReplaceAll "^0+([0-9])" . "${1}") -}}
{{- else -}}
{{- $sum := 0 -}}
{{- $units := dict "ms" 1 "s" 1000 "m" 60000 "h" 3600000 -}}
{{- range regexFindAll "[0-9]+(ms|s|m|h)" . -1 -}}
{{- $sum = add $sum (mul (int64 (regexReplaceAll "^0+([0-9])" (regexFind "[0-9]+" .) "${1}")) (get $units (regexFind "[a-z]+" .))) -}}
{{- end -}}
{{- $sum -}}
{{- end -}}
{{- end -}}

{{/* The items of a list, as JSON, of the text of a setting: those between commas, or of a JSON list the texts and the types of plugins. */}}
{{- define "tke-eni.items" -}}
{{- $items := splitList "," . -}}
{{- if hasPrefix "[" (trim .) -}}
{{- $items = list -}}
{{- range fromJsonArray . }}{{ $items = append $items (kindIs "map" . | ternary . (dict "type" .)).type }}{{ end -}}
{{- end -}}
{{- compact $items | toJson -}}
{{- end -}}

{{/* Where the agent gives metrics. */}}
{{- define "tke-eni.agent-metrics-address" -}}
{{ .Values.monitoring.enabled | ternary "0.0.0.0" "127.0.0.1" }}:61680
{{- end -}}

{{/*
What a rule of files/rules.json says against settings: `--flag: expected …, got …`; empty where it is kept. The programs decide by the
same rules (runtime/settings/check-rules.ts). Takes a list: the rule, the texts of the settings by flag.
*/}}
{{- define "tke-eni.broken-rule" -}}
{{- $rule := index . 0 -}}
{{- $texts := index . 1 -}}
{{- $isBroken := true -}}
{{- $limit := "" -}}
{{- $got := get $texts $rule.flag | default "nothing" -}}
{{- range $rule.refusedWhen -}}
{{- $text := toString (get $texts (.flag | default "")) -}}
{{- if hasKey . "sum" -}}
{{- $sum := 0 -}}
{{- range .sum }}{{ $sum = add $sum (include "tke-eni.number" (get $texts .) | int64) }}{{ end -}}
{{- $of := .of | default (list 1 1) -}}
{{- $limit = divf (mulf (include "tke-eni.number" (get $texts .above) | int64) (index $of 0)) (index $of 1) -}}
{{- if le (float64 $sum) (float64 $limit) }}{{ $isBroken = false }}{{ end -}}
{{- if has $rule.flag .sum }}{{ $got = $sum }}{{ end -}}
{{- else if hasKey . "is" -}}
{{- if not (has $text .is) }}{{ $isBroken = false }}{{ end -}}
{{- else if hasKey . "isNot" -}}
{{- if has $text .isNot }}{{ $isBroken = false }}{{ end -}}
{{- else if hasKey . "isSameAs" -}}
{{- if or (not $text) (ne $text (toString (get $texts .isSameAs))) }}{{ $isBroken = false }}{{ end -}}
{{- else if hasKey . "hasItem" -}}
{{- $condition := . -}}
{{- $found := list -}}
{{- range splitList "," $text | compact -}}
{{- if and (regexMatch $condition.hasItem .) (not (and $condition.but (regexMatch $condition.but .))) }}{{ $found = append $found . }}{{ end -}}
{{- end -}}
{{- if not $found }}{{ $isBroken = false }}{{ end -}}
{{- if eq .flag $rule.flag }}{{ $got = join "," $found }}{{ end -}}
{{- else if hasKey . "hasNoItem" -}}
{{- $condition := . -}}
{{- range splitList "," $text | compact }}{{ if regexMatch $condition.hasNoItem . }}{{ $isBroken = false }}{{ end }}{{ end -}}
{{- else if hasKey . "itemsAbove" -}}
{{- $count := splitList "," $text | compact | len -}}
{{- if le (float64 $count) (float64 .itemsAbove) }}{{ $isBroken = false }}{{ end -}}
{{- if eq .flag $rule.flag }}{{ $got = $count }}{{ end -}}
{{- else if ge (float64 (include "tke-eni.number" $text | int64)) (float64 .below) -}}
{{- $isBroken = false -}}
{{- end -}}
{{- end -}}
{{- if $isBroken -}}
{{- $expected := $rule.expected | replace "{limit}" (toString $limit) -}}
{{- range $flag, $text := $texts }}{{ $expected = $expected | replace (printf "{%s}" $flag) (toString $text) }}{{ end -}}
{{- printf "expected %s, got %s" $expected (toString $got) -}}
{{- end -}}
{{- end -}}

{{/*
Combinations of settings that a program would refuse when it starts, a line each. Takes a list: the root, the component, its settings as
variables, and what its manifest says by flags, which have precedence.
*/}}
{{- define "tke-eni.broken-rules" -}}
{{- $component := index . 1 -}}
{{- $variables := index . 2 | fromYaml -}}
{{- $of := get ((index . 0).Files.Get "files/rules.json" | fromJson) $component -}}
{{- $texts := merge (dict) (index . 3) -}}
{{- range $flag, $text := $of.defaults -}}
{{- $variable := printf "TKE_ENI_%s" ($flag | upper | replace "-" "_") -}}
{{- if not (hasKey $texts $flag) }}{{ $_ := set $texts $flag (hasKey $variables $variable | ternary (get $variables $variable) $text) }}{{ end -}}
{{- end -}}
{{- range $of.lists }}{{ $_ := set $texts . (include "tke-eni.items" (get $texts .) | fromJsonArray | join ",") }}{{ end -}}
{{- range $rule := $of.rules -}}
{{- with include "tke-eni.broken-rule" (list $rule $texts) }}{{ printf "%s.settings.%s: %s\n" $component $rule.flag . }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Ends with one error that names all combinations of settings that the programs would refuse, with those of networks. */}}
{{- define "tke-eni.refuse-settings" -}}
{{- $makesOf := dict "scheduler" (include "tke-eni.scheduler-makes-certificates" .) "webhook" (include "tke-eni.webhook-makes-certificates" .) -}}
{{- $secretOf := dict -}}
{{- range $component, $makes := $makesOf }}{{ $_ := set $secretOf $component (dict "tls-secret" (ternary "made" "" (ne $makes ""))) }}{{ end -}}
{{- $faults := include "tke-eni.broken-rules" (list . "agent" (include "tke-eni.agent-settings" .) (dict "supply-source" (.Values.agent.ciliumNode | ternary "cilium-node" "cluster") "metrics-address" (include "tke-eni.agent-metrics-address" .))) -}}
{{- $faults = print $faults (include "tke-eni.broken-rules" (list . "ipamd" (include "tke-eni.ipamd-settings" .) (dict))) -}}
{{- $faults = print $faults (include "tke-eni.broken-blocks" (include "tke-eni.ipamd-settings" . | fromYaml)) -}}
{{- if .Values.scheduler.enabled }}{{ $faults = print $faults (include "tke-eni.broken-rules" (list . "scheduler" (include "tke-eni.scheduler-settings" .) $secretOf.scheduler)) }}{{ end -}}
{{- if .Values.webhook.enabled }}{{ $faults = print $faults (include "tke-eni.broken-rules" (list . "webhook" (include "tke-eni.webhook-settings" .) $secretOf.webhook)) }}{{ end -}}
{{- if .Values.cloudControllerManager.enabled }}{{ $faults = print $faults (include "tke-eni.broken-rules" (list . "cloudControllerManager" (include "tke-eni.cloud-controller-manager-settings" .) (dict))) }}{{ end -}}
{{- if ne .Values.network.mode "vpc-cni" -}}
{{- range $flag, $name := dict "cluster-cidr" "clusterCidrs" "service-cluster-ip-range" "serviceCidr" "max-pods-per-node" "maxPodsPerNode" "node-cidr-mask-size" "nodeMaskSize" -}}
{{- $faults = $faults | replace (printf "ipamd.settings.%s:" $flag) (printf "network.%s:" $name) -}}
{{- end -}}
{{- end -}}
{{- if $faults }}{{ fail (printf "%s. docs/install.md" (splitList "\n" (trim $faults) | join "; ")) }}{{ end -}}
{{- end -}}

{{/* First address and size of an IPv4 network, as JSON. */}}
{{- define "tke-eni.range" -}}
{{- $parts := splitList "/" . -}}
{{- $start := 0 -}}
{{- range splitList "." (index $parts 0) }}{{ $start = add (mul $start 256) (int64 .) }}{{ end -}}
{{- $size := 1 -}}
{{- range until (int (sub 32 (int64 (index $parts 1)))) }}{{ $size = mul $size 2 }}{{ end -}}
{{- dict "start" $start "end" (add $start $size) "length" (int64 (index $parts 1)) | toJson -}}
{{- end -}}

{{/*
What ipamd would refuse of its networks, a line each, as findBlockFaults of ipamd/guests/pod-cidrs does: blocks that do not fit, networks that
overlap, and Services that leave no block. Takes the settings as variables.
*/}}
{{- define "tke-eni.broken-blocks" -}}
{{- $mask := get . "TKE_ENI_NODE_CIDR_MASK_SIZE" | default "0" | int64 -}}
{{- $pods := get . "TKE_ENI_MAX_PODS_PER_NODE" | default "0" | int64 -}}
{{- $ofPods := 32 -}}
{{- $size := 1 -}}
{{- range until 32 }}{{ if lt $size ($pods | default 256) }}{{ $size = mul $size 2 }}{{ $ofPods = sub $ofPods 1 }}{{ end }}{{ end -}}
{{- if and $mask $pods (lt $ofPods $mask) -}}
{{- printf "ipamd.settings.max-pods-per-node: expected no more than a block of --node-cidr-mask-size=%d has, got %d\n" $mask $pods -}}
{{- end -}}
{{- $cidrs := get . "TKE_ENI_CLUSTER_CIDR" | default "" | splitList "," | compact -}}
{{- if and $cidrs (eq (get . "TKE_ENI_ALLOCATE_NODE_CIDRS" | default "false") "true") -}}
{{- $mask = $mask | default $ofPods -}}
{{- $blockSize := 1 }}{{ range until (int (sub 32 $mask)) }}{{ $blockSize = mul $blockSize 2 }}{{ end -}}
{{- $faults := "" -}}
{{- $before := list -}}
{{- range $cidrs -}}
{{- $cidr := . -}}
{{- $range := include "tke-eni.range" . | fromJson -}}
{{- range $before -}}
{{- if and (lt (float64 $range.start) (float64 .end)) (lt (float64 .start) (float64 $range.end)) }}{{ $faults = printf "%sipamd.settings.cluster-cidr: expected networks that do not overlap, got %s\n" $faults $cidr }}{{ end -}}
{{- end -}}
{{- $before = append $before $range -}}
{{- if lt (float64 $mask) (float64 $range.length) }}{{ $faults = printf "%sipamd.settings.node-cidr-mask-size: expected at least %v, as a block must fit into %s, got %d\n" $faults $range.length $cidr $mask }}{{ end -}}
{{- if gt (float64 $mask) (addf (float64 $range.length) 16) }}{{ $faults = printf "%sipamd.settings.node-cidr-mask-size: expected at most %v, as %s would have more than 65536 blocks, got %d\n" $faults (addf $range.length 16) $cidr $mask }}{{ end -}}
{{- end -}}
{{- $service := get . "TKE_ENI_SERVICE_CLUSTER_IP_RANGE" | default "" -}}
{{- if and $service (not $faults) (contains "." $service) -}}
{{- $services := include "tke-eni.range" $service | fromJson -}}
{{- $isLeft := false -}}
{{- range $before -}}
{{- $firstEnd := addf .start $blockSize -}}
{{- $lastStart := subf .end $blockSize -}}
{{- if not (and (lt (float64 .start) (float64 $services.end)) (lt (float64 $services.start) $firstEnd) (lt $lastStart (float64 $services.end)) (lt (float64 $services.start) (float64 .end))) }}{{ $isLeft = true }}{{ end -}}
{{- end -}}
{{- if not $isLeft }}{{ $faults = printf "ipamd.settings.service-cluster-ip-range: expected a network that leaves blocks of --cluster-cidr for nodes, got %s\n" $service }}{{ end -}}
{{- end -}}
{{- $faults -}}
{{- end -}}
{{- end -}}
