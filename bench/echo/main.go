// A no-op extender: all nodes pass its filter, and all get the same priority.
//
// The throughput that kube-scheduler loses with it is the cost of calling any extender: two requests for each pod,
// each with the names of the nodes.
package main

import (
	"bytes"
	"io"
	"log"
	"net/http"
	"os"
)

var key = []byte(`"NodeNames":`)

// names returns the list of node names in a request, as it was encoded.
func names(request *http.Request) []byte {
	body, _ := io.ReadAll(request.Body)
	start := bytes.Index(body, key)
	if start < 0 {
		return []byte("[]")
	}
	rest := body[start+len(key):]
	return rest[:bytes.IndexByte(rest, ']')+1]
}

func answer(make func(names []byte) []byte) http.HandlerFunc {
	return func(response http.ResponseWriter, request *http.Request) {
		response.Header().Set("Content-Type", "application/json")
		response.Write(make(names(request)))
	}
}

func filtered(names []byte) []byte {
	return bytes.Join([][]byte{[]byte(`{"NodeNames":`), names, []byte("}")}, nil)
}

func prioritized(names []byte) []byte {
	if len(names) <= 2 {
		return []byte("[]")
	}
	between := []byte(`","`)
	hosts := bytes.ReplaceAll(names[2:len(names)-2], between, []byte(`","Score":5},{"Host":"`))
	return bytes.Join([][]byte{[]byte(`[{"Host":"`), hosts, []byte(`","Score":5}]`)}, nil)
}

func main() {
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/scheduler/predicates/", answer(filtered))
	http.HandleFunc("/scheduler/priorities/", answer(prioritized))
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
